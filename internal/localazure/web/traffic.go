package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

const (
	mostRows    = 200 // requests on a page
	mostBudgets = 30
	rateSeconds = 60 // of the chart of requests
)

// request is a line of the request log.
type request struct {
	Time       time.Time `json:"time"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	APIVersion string    `json:"apiVersion,omitempty"`
	Status     int       `json:"status"`
	ErrorCode  string    `json:"errorCode,omitempty"`
	DurationMs float64   `json:"durationMs"`
	UserAgent  string    `json:"userAgent,omitempty"`
	BytesIn    int64     `json:"bytesIn"`
	BytesOut   int64     `json:"bytesOut"`
}

// Target is what the request is to: a resource, or "".
func (r request) Target() azure.ID {
	id, err := azure.ParseID(r.Path)
	if err != nil || id.Group() == "" {
		return ""
	}
	return id
}

// Type is the short type of the target, or the beginning of the path.
func (r request) Type() string {
	if id := r.Target(); id != "" {
		return strings.TrimPrefix(id.Type(), "Microsoft.")
	}
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	return parts[len(parts)-1]
}

// Client is the program that sent it.
func (r request) Client() string {
	program, _, _ := strings.Cut(r.UserAgent, " ")
	return program
}

// Class is the first digit of the status, such as "4".
func (r request) Class() string { return string(rune('0' + r.Status/100)) }

// requestFilter selects requests.
type requestFilter struct{ Method, Status, Text string }

func (f requestFilter) matches(r request) bool {
	return (f.Method == "" || f.Method == r.Method) && (f.Status == "" || f.Status == r.Class()) &&
		(f.Text == "" || strings.Contains(strings.ToLower(r.Path+" "+r.UserAgent+" "+r.ErrorCode), strings.ToLower(f.Text)))
}

// query is the filter as the query of a URL.
func (f requestFilter) query() string {
	return url.Values{"method": {f.Method}, "status": {f.Status}, "text": {f.Text}}.Encode()
}

func readRequestFilter(r *http.Request) requestFilter {
	q := r.URL.Query()
	return requestFilter{q.Get("method"), q.Get("status"), strings.TrimSpace(q.Get("text"))}
}

// trafficPage is the requests, the limits and the operations.
type trafficPage struct {
	Filter     requestFilter
	Query      string // of the link to the file
	Methods    []string
	Requests   []request
	Matching   int
	Throttled  bool // rate limits are on
	Budgets    []budget
	Operations []operationRow
	Bars       []bar
	PerSecond  int // the most requests in a second
}

// budget is what is left of a rate limit. Below Low it is short.
type budget struct {
	core.Budget
	Low int
}

// lowShare is the part of a rate limit that is little: one of four.
const lowShare = 4

// bar is the requests in a second as a bar of a chart.
type bar struct {
	X, Y, Height    int
	Failed, FailedY int // the height of those that failed
}

func (s *Site) showTraffic(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, frame{View: "traffic", Title: "Traffic"}, func() (any, int) {
		page := s.traffic(readRequestFilter(r), time.Now())
		page.Query = readRequestFilter(r).query()
		if page.PerSecond > 0 {
			return page, 2000 // the chart moves on
		}
		return page, 0
	})
}

func (s *Site) traffic(f requestFilter, now time.Time) trafficPage {
	all := s.requests()
	page := trafficPage{Filter: f, Methods: []string{"GET", "PUT", "PATCH", "POST", "DELETE", "HEAD"},
		Throttled: s.Azure.Throttle.On(), Operations: s.running()}
	page.Bars, page.PerSecond = rates(all, now)
	if page.Throttled {
		page.Budgets = s.budgets(now)
	}
	all = slices.DeleteFunc(all, func(r request) bool { return !f.matches(r) })
	page.Matching, page.Requests = len(all), all[:min(len(all), mostRows)]
	return page
}

// budgets are the rate limits of which the smallest share is left.
func (s *Site) budgets(now time.Time) (all []budget) {
	for _, b := range s.Azure.Throttle.Budgets(now, mostBudgets) {
		b.Name = strings.TrimPrefix(b.Name, "Microsoft.")
		if id, err := azure.ParseID(b.Of); err == nil {
			b.Of = longName(id)
		} else if name := s.Callers[strings.ToLower(b.Of)]; name != "" {
			b.Of = name
		}
		all = append(all, budget{b, b.Total / lowShare})
	}
	return all
}

// requests are the last requests, the newest first.
func (s *Site) requests() []request {
	lines := s.Recorder.lines()
	all := make([]request, 0, len(lines))
	for _, line := range lines {
		var r request
		if json.Unmarshal(line, &r) == nil {
			all = append(all, r)
		}
	}
	return all
}

// rates are the requests of the last seconds as bars, and the most in a second.
func rates(all []request, now time.Time) (bars []bar, most int) {
	const height = 40
	var count, failed [rateSeconds]int
	for _, r := range all {
		if ago := int(now.Sub(r.Time) / time.Second); ago >= 0 && ago < rateSeconds {
			count[ago]++
			if r.Status >= http.StatusBadRequest {
				failed[ago]++
			}
			most = max(most, count[ago])
		}
	}
	const width = 5
	for ago, n := range count {
		if n > 0 {
			b := bar{X: (rateSeconds - 1 - ago) * width, Height: max(1, n*height/most), Failed: failed[ago] * height / most}
			b.Y, b.FailedY = height-b.Height, height-b.Failed
			bars = append(bars, b)
		}
	}
	return bars, most
}

// saveTraffic sends the requests that a filter selects as a file, the oldest first.
func (s *Site) saveTraffic(w http.ResponseWriter, r *http.Request) {
	f := readRequestFilter(r)
	all := slices.DeleteFunc(s.requests(), func(r request) bool { return !f.matches(r) })
	slices.Reverse(all)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="requests.json"`)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(map[string]any{"requests": all}) // the viewer may have gone
}
