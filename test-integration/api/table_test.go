package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/apiservertest"
)

// poolsColumn is the column that `kubectl get csistoragecapacities -o wide` adds.
const poolsColumn = "Pools"

// TestCSIStorageCapacityTable asks for the table that kubectl prints.
func TestCSIStorageCapacityTable(t *testing.T) {
	tCtx := ktesting.Init(t)
	server := apiservertest.StartGateOn(tCtx, apiservertest.NewStorage())
	createCapacity(tCtx, server.Client, newCapacity("pools", "100Gi", "20Gi"))
	createCapacity(tCtx, server.Client, newCapacity("many", "1Gi", "2Gi", "3Gi", "4Gi", "5Gi", "6Gi", "7Gi"))
	createCapacity(tCtx, server.Client, newCapacity("unset"))

	body, err := server.Client.StorageV1().RESTClient().Get().Namespace(ns).Resource("csistoragecapacities").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(tCtx)
	if err != nil {
		tCtx.Fatalf("get table: %v", err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		tCtx.Fatalf("decode table: %v", err)
	}
	column := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == poolsColumn })
	if column < 0 {
		tCtx.Fatalf("no column %s in %+v", poolsColumn, table.ColumnDefinitions)
	}
	if c := table.ColumnDefinitions[column]; c.Description == "" || c.Priority == 0 {
		tCtx.Errorf("column %s has no description, or is not only for wide output: %+v", poolsColumn, c)
	}
	if !slices.ContainsFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Age" }) {
		tCtx.Errorf("no column Age in %+v", table.ColumnDefinitions)
	}
	got := map[string]string{}
	for _, row := range table.Rows {
		got[fmt.Sprint(row.Cells[0])] = fmt.Sprint(row.Cells[column])
	}
	for name, want := range map[string]string{
		"pools": "100Gi,20Gi",
		"many":  "1Gi,2Gi,3Gi,4Gi,5Gi + 2 more...",
		"unset": "<unset>",
	} {
		if got[name] != want {
			tCtx.Errorf("column %s of %s: %q, want %q", poolsColumn, name, got[name], want)
		}
	}
}
