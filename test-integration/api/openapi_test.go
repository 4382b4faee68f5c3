package api

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
)

// property is what we read of a field's schema.
type property struct {
	Description string `json:"description"`
	Type        string `json:"type"`
	ListType    string `json:"x-kubernetes-list-type"`
	Items       struct {
		Ref   string                 `json:"$ref"`
		AllOf []struct{ Ref string } `json:"allOf"`
	} `json:"items"`
}

type schemas map[string]struct {
	Properties map[string]property `json:"properties"`
}

// TestOpenAPI checks that discovery leads to schemas that have the fields. The
// schema does not depend on the gate, as with every gated field.
func TestOpenAPI(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := apiservertest.StartGateOn(tCtx, apiservertest.NewStorage())
	rest := server.Client.Discovery().RESTClient()

	get := func(tCtx ktesting.TContext, path string, into any) {
		tCtx.Helper()
		uri, query, _ := strings.Cut(path, "?")
		request := rest.Get().AbsPath(uri)
		if hash, ok := strings.CutPrefix(query, "hash="); ok {
			request = request.Param("hash", hash)
		}
		body, err := request.DoRaw(tCtx)
		if err != nil {
			tCtx.Fatalf("get %s: %v", path, err)
		}
		if err := json.Unmarshal(body, into); err != nil {
			tCtx.Fatalf("decode %s: %v", path, err)
		}
	}

	tCtx.Run("v2", func(tCtx ktesting.TContext) {
		var doc struct {
			Definitions schemas `json:"definitions"`
		}
		get(tCtx, "/openapi/v2", &doc)
		expectSchemas(tCtx, doc.Definitions)
	})

	tCtx.Run("v3", func(tCtx ktesting.TContext) {
		var index struct {
			Paths map[string]struct {
				URL string `json:"serverRelativeURL"`
			} `json:"paths"`
		}
		get(tCtx, "/openapi/v3", &index)
		entry, ok := index.Paths["apis/storage.k8s.io/v1"]
		if !ok {
			tCtx.Fatal("the index of /openapi/v3 has no apis/storage.k8s.io/v1")
		}
		var doc struct {
			Components struct {
				Schemas schemas `json:"schemas"`
			} `json:"components"`
		}
		get(tCtx, entry.URL, &doc)
		expectSchemas(tCtx, doc.Components.Schemas)
	})
}

// expectSchemas checks both fields in storage.k8s.io/v1.
func expectSchemas(tCtx ktesting.TContext, all schemas) {
	tCtx.Helper()
	pools, ok := all["io.k8s.api.storage.v1.CSIStorageCapacity"].Properties["availableCapacities"]
	if !ok {
		tCtx.Error("CSIStorageCapacity has no availableCapacities")
	} else {
		ref := pools.Items.Ref
		for _, one := range pools.Items.AllOf {
			ref += one.Ref
		}
		if pools.Type != "array" || !strings.HasSuffix(ref, "io.k8s.apimachinery.pkg.api.resource.Quantity") {
			tCtx.Errorf("availableCapacities is %q of %q, want an array of quantities", pools.Type, ref)
		}
		if pools.ListType != "atomic" {
			tCtx.Errorf("availableCapacities has the list type %q, want atomic", pools.ListType)
		}
		expectDocumented(tCtx, "availableCapacities", pools)
	}

	rebuilding, ok := all["io.k8s.api.storage.v1.CSIDriverSpec"].Properties["volumeRebuilding"]
	if !ok {
		tCtx.Error("CSIDriverSpec has no volumeRebuilding")
		return
	}
	if rebuilding.Type != "boolean" {
		tCtx.Errorf("volumeRebuilding is %q, want boolean", rebuilding.Type)
	}
	expectDocumented(tCtx, "volumeRebuilding", rebuilding)
}

// expectDocumented checks what `kubectl explain` has to tell.
func expectDocumented(tCtx ktesting.TContext, name string, p property) {
	tCtx.Helper()
	if !strings.HasPrefix(p.Description, name+" ") || !strings.Contains(p.Description, "CSIStorageCapacityV2") {
		tCtx.Errorf("description of %s does not begin with its name, or does not name the gate:\n%s", name, p.Description)
	}
}
