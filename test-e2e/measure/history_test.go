package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"k8s.io/apimachinery/pkg/api/resource"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/record"
	"capacityv2.internal/test-e2e/driver/server"
	"capacityv2.internal/test-e2e/driver/volume"
	"capacityv2.internal/test-integration/history"
)

// TestOperations reads a log with a volume that is created, asked for again and deleted, one that finds no room, one that
// another node takes over, and one during which the driver is killed.
func TestOperations(t *testing.T) {
	v, w := pool.ID("pvc-v", "n"), pool.ID("pvc-w", "n")
	log := `{"event":"pool","at":"2026-11-24T12:00:00Z","node":"n","pool":"fast","bytes":100}
{"event":"has","at":"2026-11-24T12:00:00Z","node":"n","volume":"old","pool":"fast","bytes":10}
{"event":"started","at":"2026-11-24T12:00:00.1Z","node":"n"}
I1124 12:00:01.000000       1 serve.go:36] "Serving" socket="/csi/csi.sock"
{"event":"takes","at":"2026-11-24T12:00:02Z","node":"n","volume":"` + v + `","pool":"fast","bytes":60,"pools":["fast","slow"]}
{"event":"gives back","at":"2026-11-24T12:00:02.2Z","node":"other","volume":"old","pool":"a","bytes":10}
{"event":"taken","at":"2026-11-24T12:00:02.5Z","node":"n","volume":"` + v + `","pool":"fast","bytes":60,"pools":["fast","slow"]}
{"event":"given back","at":"2026-11-24T12:00:02.6Z","node":"other","volume":"old","pool":"a","bytes":10}
{"event":"create","at":"2026-11-24T12:00:03Z","name":"pvc-v","bytes":60,"code":"OK","began":"2026-11-24T12:00:01Z"}
{"event":"refused","at":"2026-11-24T12:00:04Z","node":"n","volume":"` + w + `","bytes":60}
E1124 12:00:05.000000       1 serve.go:27] "Call failed" err="rpc error: code = ResourceExhausted desc = no pool" method="/csi.v1.Controller/CreateVolume" request="{}"
{"event":"create","at":"2026-11-24T12:00:05Z","name":"pvc-w","bytes":60,"code":"ResourceExhausted","began":"2026-11-24T12:00:03Z"}
{"event":"create","at":"2026-11-24T12:00:06Z","name":"pvc-v","bytes":60,"code":"OK","began":"2026-11-24T12:00:05Z"}
{"event":"gives back","at":"2026-11-24T12:00:07Z","node":"n","volume":"` + v + `","pool":"fast","bytes":60}
{"event":"given back","at":"2026-11-24T12:00:07.5Z","node":"n","volume":"` + v + `","pool":"fast","bytes":60}
{"event":"delete","at":"2026-11-24T12:00:08Z","volume":"` + v + `","code":"OK","began":"2026-11-24T12:00:06.5Z"}
{"event":"takes","at":"2026-11-24T12:00:09Z","node":"n","volume":"lost","pool":"fast","bytes":5}
`
	operations, err := operations(log, "n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range operations {
		at := "at an unknown moment"
		if !o.At.IsZero() {
			at = "at " + o.At.Format("05.0")
		}
		until := "-"
		if !o.Return.IsZero() {
			until = o.Return.Format("05.0")
		}
		got = append(got, o.Node+" "+o.Call.Format("05.0")+" "+until+" "+at+": "+o.String())
	}
	want := []string{
		"n 00.1 00.1 at 00.1: start with 1 pools and 1 volumes",
		"n 01.0 03.0 at 02.5: create " + v + " of 60 bytes: pool fast",
		"other 02.2 02.6 at 02.6: delete old: pool a",
		"n 03.0 05.0 at 04.0: create " + w + " of 60 bytes: refused",
		"n 05.0 06.0 at an unknown moment: create " + v + " of 60 bytes: ok",
		"n 06.5 08.0 at 07.5: delete " + v + ": pool fast",
		"n 09.0 - at an unknown moment: create lost of 5 bytes: unknown",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if allowed := operations[1].Allowed; !slices.Equal(allowed, []string{"fast", "slow"}) {
		t.Errorf("allowed pools %q, want fast and slow", allowed)
	}
}

// buffer is a log that several calls write.
type buffer struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(line []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.Buffer.Write(line)
}

// TestDriverLog reads what the driver writes when many volumes are created and deleted at once, in less room
// than they need. All of that is legal, and a seeded fault of its books is not.
func TestDriverLog(t *testing.T) {
	dir, err := os.MkdirTemp("", "log") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := &buffer{}
	ctx := t.Context()
	store, err := pool.Create(dir, "n", []pool.Pool{{Name: "a", Size: resource.MustParse("5Mi")}, {Name: "b", Size: resource.MustParse("2Mi")}})
	if err != nil {
		t.Fatal(err)
	}
	write := record.Writer{Writer: log}
	store.Record = write.Room
	if err := store.RecordAll(); err != nil {
		t.Fatal(err)
	}
	manager, err := volume.New(ctx, &volume.Manager{Store: store, Backing: volume.Folders{}, Placement: anywhere{}})
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := server.NewGRPC(ctx, write.Call)
	csi.RegisterControllerServer(grpcServer, &server.Controller{Volumes: manager})
	go func() { _ = server.Serve(ctx, grpcServer, filepath.Join(dir, "csi.sock")) }()
	connection, err := grpc.NewClient("unix:"+filepath.Join(dir, "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := csi.NewControllerClient(connection)
	create := func(name string) (*csi.CreateVolumeResponse, error) {
		return client.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
			VolumeCapabilities: []*csi.VolumeCapability{{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			}},
		}, grpc.WaitForReady(true))
	}
	// Two fill the smaller pool, and two are in the other one at once. Whether more meet there is up to the machine.
	for i := range 4 {
		if _, err := create(fmt.Sprintf("pvc-first-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for round := range 5 {
				created, err := create(fmt.Sprintf("pvc-%d-%d", i, round))
				if status.Code(err) == codes.ResourceExhausted {
					continue
				}
				if err == nil {
					_, err = client.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: created.Volume.VolumeId})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	read, err := operations(log.String(), "n")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[history.Kind]int{}
	for _, o := range read {
		kinds[o.Kind]++
		if o.Kind != history.Start && (o.Result == history.Unknown || !o.Call.Before(o.At) || !o.At.Before(o.Return)) {
			t.Errorf("%v from %v to %v took effect at %v, want a moment between them", o, o.Call, o.Return, o.At)
		}
	}
	if kinds[history.Start] != 1 || kinds[history.Create] != 44 || kinds[history.Delete] == 0 {
		t.Errorf("got %v, want one start, all 44 volumes and their deletions", kinds)
	}
	history.Expect(t, "driver", read, history.Rules{Refusals: len(read)})

	read, err = operations(strings.ReplaceAll(log.String(), `"bytes":5242880`, `"bytes":1048576`), "n")
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Check(t.TempDir(), "small", read, history.Rules{Refusals: len(read)}); err == nil || !strings.Contains(err.Error(), "pool a") {
		t.Errorf("got error %v, want a volume for which pool a is too small", err)
	}
}

// anywhere lets a node do whatever it asks for.
type anywhere struct{ volume.Placement }

func (anywhere) Ask(context.Context, volume.Question, pool.Volume, string, ...string) error {
	return nil
}
