package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/cel-go/cel"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	conversion "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
)

func read(t *testing.T) (p admissionv1.ValidatingAdmissionPolicy) {
	t.Helper()
	file, err := os.ReadFile("policy.yaml")
	if err == nil {
		err = yaml.NewYAMLOrJSONDecoder(bytes.NewReader(file), 4096).Decode(&p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestValid has the API server's own check of the policy, which knows types.
func TestValid(t *testing.T) {
	p := read(t)
	conversion.SetObjectDefaults_ValidatingAdmissionPolicy(&p)
	var internal admissionregistration.ValidatingAdmissionPolicy
	if err := conversion.Convert_v1_ValidatingAdmissionPolicy_To_admissionregistration_ValidatingAdmissionPolicy(&p, &internal, nil); err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidateValidatingAdmissionPolicy(&internal); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}

// policy evaluates the policy as the API server does, but for the types of objects.
func policy(t *testing.T, input map[string]any) (denied []string) {
	t.Helper()
	p := read(t)
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	eval := func(expression string) any {
		t.Helper()
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.Eval(input)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return value.Value()
	}
	if eval(p.Spec.MatchConditions[0].Expression) != true {
		return nil
	}
	variables := map[string]any{}
	input["variables"] = variables
	for _, v := range p.Spec.Variables {
		variables[v.Name] = eval(v.Expression)
	}
	for _, v := range p.Spec.Validations {
		if eval(v.Expression) != true {
			denied = append(denied, v.Message)
		}
	}
	return denied
}

const (
	volume = `{"metadata":{"name":"pv","annotations":{"a":"b"},"finalizers":["kubernetes.io/pv-protection","external-provisioner.volume.kubernetes.io/finalizer"]},
		"spec":{"capacity":{"storage":"1Gi"},"claimRef":{"name":"claim"},"csi":{"driver":"reference.csi.capacityv2.internal","volumeHandle":"v"}` + on + `}}`
	on = `,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.reference.csi.capacityv2.internal/node","operator":"In","values":["n1"]}]}]}}`
)

func TestPolicy(t *testing.T) {
	replace := func(pairs ...string) string {
		changed := volume
		for i := 0; i < len(pairs); i += 2 {
			after := string(bytes.Replace([]byte(changed), []byte(pairs[i]), []byte(pairs[i+1]), 1))
			if after == changed {
				t.Fatalf("no %s in %s", pairs[i], changed)
			}
			changed = after
		}
		return changed
	}
	const node, controller = "system:serviceaccount:reference-csi:reference-node", "system:serviceaccount:reference-csi:reference-controller"
	for name, test := range map[string]struct {
		user, operation, before, now string
		denied                       string
	}{
		"made":            {node, "CREATE", "", volume, ""},
		"deleted":         {node, "DELETE", volume, "", ""},
		"finalizer":       {node, "UPDATE", volume, replace(`,"external-provisioner.volume.kubernetes.io/finalizer"`, ""), ""},
		"other finalizer": {node, "UPDATE", volume, replace(`"kubernetes.io/pv-protection",`, ""), "only the finalizer of external-provisioner may change"},
		"released":        {controller, "UPDATE", volume, replace(on, "", `"a":"b"`, `"a":"b","pv.kubernetes.io/home-nodes":"n1=u"`), ""},
		"begun":           {node, "UPDATE", replace(on, ""), replace(on, "", `"a":"b"`, `"a":"b","reference.csi.capacityv2.internal/begun":"n1"`), ""},
		"names itself":    {node, "UPDATE", replace(on, ""), volume, ""},
		"names another":   {node, "UPDATE", volume, replace(`["n1"]`, `["n2"]`), "a node may only name itself"},
		"controller":      {controller, "UPDATE", replace(on, ""), replace(`["n1"]`, `["n2"]`), ""},
		"other driver":    {controller, "UPDATE", replace("reference.csi.capacityv2.internal\",\"v", "other\",\"v"), replace("reference.csi.capacityv2.internal\",\"v", "other\",\"v"), "it is a volume of another driver"},
		"no CSI":          {node, "CREATE", "", `{"metadata":{},"spec":{"hostPath":{"path":"/"}}}`, "it is a volume of another driver"},
		"claim":           {node, "UPDATE", volume, replace(`{"name":"claim"}`, `{"name":"other"}`), "only spec.nodeAffinity may change"},
		"size":            {controller, "UPDATE", volume, replace(`,"claimRef":{"name":"claim"}`, ""), "only spec.nodeAffinity may change"},
		"annotation":      {node, "UPDATE", volume, replace(`"a":"b"`, `"a":"c"`), "only the list of home nodes and the driver's annotations may change"},
		"annotation gone": {node, "UPDATE", volume, replace(`"a":"b"`, ""), "only the list of home nodes and the driver's annotations may change"},
		"somebody else":   {"admin", "UPDATE", volume, replace(`{"name":"claim"}`, `{"name":"other"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			input := map[string]any{"request": map[string]any{"operation": test.operation, "userInfo": map[string]any{
				"username": test.user, "extra": map[string]any{"authentication.kubernetes.io/node-name": []any{"n1"}},
			}}}
			for key, text := range map[string]string{"object": test.now, "oldObject": test.before} {
				var object any
				if text != "" {
					if err := json.Unmarshal([]byte(text), &object); err != nil {
						t.Fatal(err)
					}
				}
				input[key] = object
			}
			denied := policy(t, input)
			if len(denied) > 1 || (len(denied) == 1) != (test.denied != "") || len(denied) == 1 && denied[0] != test.denied {
				t.Errorf("denied: %q; expected %q", denied, test.denied)
			}
		})
	}
}
