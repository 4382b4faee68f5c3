package bench

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"capacityv2.internal/scripts/ground/picture"
)

// drawDepths draws the depth of the provisioner's queue over time, stock and patched. That of one which confirms is
// nearly the same as patched, so it would hide it.
func drawDepths(raw []byte) ([]byte, error) {
	rows, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		return nil, err
	}
	points, most := map[string]plotter.XYs{}, plotter.XY{} // by the provisioner and the step
	for i, row := range rows {
		if i == 0 {
			continue // the names of the columns
		}
		var point plotter.XY
		if _, err := fmt.Sscan(row[2]+" "+row[3], &point.X, &point.Y); err != nil {
			return nil, fmt.Errorf("%q: %w", row, err)
		}
		of := row[0] + ", " + row[1]
		points[of] = append(points[of], point)
		most.X, most.Y = max(most.X, point.X), max(most.Y, point.Y)
	}
	var images []*plot.Plot
	var sentences []string
	for _, step := range []string{"all objects are new", "all numbers change"} {
		image := picture.New()
		image.Title.Text, image.X.Label.Text, image.Y.Label.Text = "Queue when "+step, "seconds", "depth"
		image.X.Tick.Marker = every(20)
		image.X.Min, image.X.Max, image.Y.Min, image.Y.Max = 0, most.X*1.05, 0, most.Y*1.15
		image.Add(plotter.NewGrid())
		var deepest []string
		for i, line := range []string{"stock", "patched"} {
			of := points[line+", "+step]
			if len(of) == 0 {
				return nil, fmt.Errorf("no depths of %s, %s", line, step)
			}
			top := 0
			for at, point := range of {
				if point.Y > of[top].Y {
					top = at
				}
			}
			if err := addLine(image, []color.Color{picture.Red, picture.Blue}[i], of, line, top); err != nil {
				return nil, err
			}
			deepest = append(deepest, strconv.Itoa(int(of[top].Y))+" "+line)
		}
		images = append(images, image)
		sentences = append(sentences, fmt.Sprintf("Deepest queue of the provisioner when %s: %s.", step, strings.Join(deepest, ", ")))
	}
	return picture.Row(strings.Join(sentences, " "), 9*vg.Centimeter, 7*vg.Centimeter, images...)
}
