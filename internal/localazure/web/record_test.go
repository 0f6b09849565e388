package web

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

func written(name string, text []byte) []core.Written {
	return []core.Written{{ID: azure.GroupID("s", name), At: time.Now(), Text: text}}
}

// TestRecorderIsBounded checks the bounds of what a recorder keeps.
func TestRecorderIsBounded(t *testing.T) {
	r := NewRecorder()
	for i := range 3 * mostPerResource {
		r.Written(written("busy", fmt.Appendf(nil, `{"n":%d}`, i)))
	}
	history := r.history(azure.GroupID("s", "busy"))
	if len(history) != mostPerResource || string(history[0].Text) != fmt.Sprintf(`{"n":%d}`, 3*mostPerResource-1) {
		t.Errorf("%d versions of a resource, the last is %s", len(history), history[0].Text)
	}
	for i := range mostVersions + 10 {
		r.Written(written(fmt.Sprint(i), []byte(`{}`)))
	}
	if len(r.written.all) != mostVersions || len(r.versions) != mostVersions || r.written.size != 2*mostVersions {
		t.Errorf("%d versions of %d resources with %d bytes", len(r.written.all), len(r.versions), r.written.size)
	}
	large := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 40 {
		r.Written(written("large"+fmt.Sprint(i), large))
	}
	if r.written.size > mostVersionBytes || len(r.versions) != len(r.written.all) {
		t.Errorf("%d bytes; %d resources have %d versions", r.written.size, len(r.versions), len(r.written.all))
	}
	line := bytes.Repeat([]byte("x"), 4000)
	for range mostRequests {
		if _, err := r.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.lines(); len(got) > mostRequests || len(got)*len(line) > mostRequestBytes || len(got) < mostRequestBytes/len(line) {
		t.Errorf("%d requests", len(got))
	}
}

// TestRecorderSaysWhatHappened checks the verbs of writes.
func TestRecorderSaysWhatHappened(t *testing.T) {
	r := NewRecorder()
	id := azure.GroupID("s", "g")
	for _, text := range []string{"", "1", "1", "2", "", "", "3"} {
		var document []byte
		if text != "" {
			document = []byte(text)
		}
		r.Written(written("g", document))
	}
	var got []string
	for _, v := range r.history(id) {
		got = append(got, v.verb+string(v.Text))
	}
	if fmt.Sprint(got) != "[created3 deleted changed2 created1]" {
		t.Errorf("history %q", got)
	}
	news := r.latest(time.Time{}, 10, func(core.Written) string { return "" })
	if len(news) != 1 || news[0].Verb != "created" {
		t.Errorf("last changes %v", news)
	}
}

// BenchmarkRecord is what a write costs without a viewer.
func BenchmarkRecord(b *testing.B) {
	r := NewRecorder()
	line := bytes.Repeat([]byte("x"), 300)
	texts := [][]byte{bytes.Repeat([]byte("x"), 2000), bytes.Repeat([]byte("y"), 2000)}
	for i := 0; b.Loop(); i++ {
		r.Written(written(fmt.Sprint(i%1000), texts[i/1000%2]))
		_, _ = r.Write(line)
	}
}
