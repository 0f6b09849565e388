// Package web is the web page of a local Azure: what there is and what refers to what, the requests as they come, and the fault rules.
// Layer L4: the core of the local Azure and its client. The server serves it below [Path].
//
// Nothing is computed without a viewer: a [Recorder] keeps bounded lists of writes and requests as they come, as texts. Pages are made
// when they are asked for, from these lists and from the documents, as clients of the local Azure see them.
package web

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"

	"kaz/internal/localazure/core"
	"kaz/internal/picture"
)

// Path is the beginning of the paths of the web page.
const Path = "/kaz/web/"

// Options say what a [Site] shows.
type Options struct {
	Azure    *core.Emulator
	Recorder *Recorder
	// Token is what the first request must bring. The link has it.
	Token string
	// Write lets viewers add and remove fault rules.
	Write bool
	// Callers are the names of applications by their client ids in lower case.
	Callers map[string]string
	// Why explains objects of the cluster that runs on this Azure. Nil says that there is none.
	Why Explainer
	// Done ends the event streams.
	Done <-chan struct{}
	// Log receives internal errors. Nil is slog.Default.
	Log *slog.Logger
}

// Site is the web page as a handler.
type Site struct {
	Options
	pages    *template.Template
	assets   map[string][]byte // by their names
	routes   map[string]http.HandlerFunc
	streams  chan struct{} // of the open event streams
	explains chan struct{} // of the explanation that is being made

	mu      sync.Mutex
	digests map[string]*digest // of the last map, by the keys of ids
	health  map[string]health  // of the members of load balancing rules, by the keys of ids
}

//go:embed templates assets
var files embed.FS

// New returns the web page of a local Azure.
func New(o Options) (*Site, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	s := &Site{Options: o, assets: map[string][]byte{}, digests: map[string]*digest{}}
	s.streams, s.explains = make(chan struct{}, mostStreams), make(chan struct{}, 1)
	var err error
	functions := template.FuncMap{"link": resourceLink, "tab": newTab, "long": longName, "label": labelOf}
	if s.pages, err = template.New("").Funcs(functions).ParseFS(files, "templates/*.html"); err != nil {
		return nil, err
	}
	err = fs.WalkDir(files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s.assets[path.Base(name)], err = files.ReadFile(name)
		return err
	})
	s.assets["picture.css"] = []byte(picture.Style)
	s.routes = map[string]http.HandlerFunc{
		"GET ":               s.showMap,
		"GET resource":       s.showResource,
		"GET traffic":        s.showTraffic,
		"GET traffic.json":   s.saveTraffic,
		"GET faults":         s.showFaults,
		"GET why":            s.showWhy,
		"POST faults/add":    s.addFault,
		"POST faults/remove": s.removeFault,
		"GET events":         s.sendEvents,
	}
	return s, err
}

// Handler returns the handler of a path, nil for a path that is not of the web page.
func (s *Site) Handler(path string) http.Handler {
	if path+"/" != Path && !strings.HasPrefix(path, Path) {
		return nil
	}
	return s.guarded(http.HandlerFunc(s.route))
}

func (s *Site) route(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	if name+"/" == Path {
		http.Redirect(w, r, Path, http.StatusSeeOther)
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if h := s.routes[method+" "+name]; h != nil {
		h(w, r)
		return
	}
	if text, ok := s.assets[strings.TrimPrefix(name, "assets/")]; ok && method == http.MethodGet {
		w.Header().Set("Content-Type", map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml"}[path.Ext(name)])
		_, _ = w.Write(text) // the viewer may have gone
		return
	}
	s.fail(w, r, http.StatusNotFound, "There is no such page.")
}

// frame is what all pages show.
type frame struct {
	View  string // of the navigation
	Title string
	Write bool
	// Again is the time in milliseconds after which the page is different without an event, 0 for none.
	Again   int
	Summary summary
	Page    any
}

// tab is a link of the navigation.
type tab struct {
	Path, Name string
	Current    bool
}

func newTab(view, path, name, current string) tab { return tab{path, name, view == current} }

// summary is what the head of every page says of this Azure.
type summary struct {
	Resources, Running, Faults int
	Latency, Throttle          string
}

func (s *Site) summary() summary {
	settings := s.Azure.Settings()
	sum := summary{Resources: s.Azure.Stored(), Faults: len(s.Azure.Faults.All()), Latency: formatFactor(settings.Latency), Throttle: "off"}
	if settings.Throttle {
		sum.Throttle = "azure"
	}
	sum.Running = len(s.running())
	return sum
}

// show sends a page, or its content only if the request asks for a part. The content is made after the head is sent, so that the browser
// reads its style meanwhile.
func (s *Site) show(w http.ResponseWriter, r *http.Request, status int, f frame, content func() (page any, again int)) {
	f.Write = s.Write
	part := r.URL.Query().Get("part") != ""
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if !part {
		s.execute(w, "head", f)
		_ = http.NewResponseController(w).Flush() // the viewer may have gone
	}
	f.Page, f.Again = content()
	if f.Summary = s.summary(); f.Summary.Running > 0 {
		f.Again = 1000
	}
	s.execute(w, "part", f)
	if !part {
		s.execute(w, "foot", f)
	}
}

// execute sends what a template makes, all or nothing.
func (s *Site) execute(w http.ResponseWriter, name string, f frame) {
	var text bytes.Buffer
	if err := s.pages.ExecuteTemplate(&text, name, f); err != nil {
		s.Log.Error("page of the local azure", "view", f.View, "error", err)
		text.Reset()
		text.WriteString("The page cannot be made; the log says why.")
	}
	_, _ = w.Write(text.Bytes()) // the viewer may have gone
}

// fixed is content that is there already.
func fixed(page any) func() (any, int) { return func() (any, int) { return page, 0 } }

// fail sends a page with a message.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	s.show(w, r, status, frame{View: "message", Title: http.StatusText(status)}, fixed(message))
}
