// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

func TestRow(t *testing.T) {
	p := New()
	p.Title.Text, p.X.Label.Text = "head", "below"
	texts, err := Texts([]string{"beside"}, plotter.XYs{{X: 1, Y: 1}}, 8, text.XLeft, text.YCenter, vg.Point{})
	if err != nil {
		t.Fatal(err)
	}
	p.Add(texts)
	svg, err := Row("1 < 2", 5*vg.Centimeter, 5*vg.Centimeter, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>1 &lt; 2</title>", ">head<", ">below<", ">beside<", "font-family:Liberation Sans,sans-serif"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	if strings.Contains(string(svg), "Serif") {
		t.Error("a text has serifs")
	}
	if _, err := Row("none", 1, 1); err == nil {
		t.Error("nothing to draw, and no error")
	}
}
