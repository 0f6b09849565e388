// Package replay plays the requests of a cassette against a local Azure and lists how its answers differ from those that were recorded.
// Layer L3.
package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"kaz/internal/verify/cassette"
	"kaz/internal/verify/probe"
)

// Difference is one between a recorded and a local answer.
type Difference struct {
	// Interaction is the number of the request in the cassette.
	Interaction int    `json:"interaction"`
	Probe       string `json:"probe,omitempty"`
	Request     string `json:"request"`
	// What differs: status, code, outcome or shape.
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Local    string `json:"local"`
}

// Result is that of a replay.
type Result struct {
	Compared int `json:"compared"`
	// Folded requests are polls before the last one of an operation, and further pages of lists.
	Folded int `json:"folded"`
	// Skipped are requests that cannot be sent again, each with its reason.
	Skipped     []string     `json:"skipped"`
	Differences []Difference `json:"differences"`
}

// Target is the local Azure.
type Target struct {
	Transport http.RoundTripper
	// Subscription takes the place of that of the cassette.
	Subscription string
}

// zeros is the subscription of a cassette.
const zeros = "00000000-0000-0000-0000-000000000000"

// player sends requests. It learns which values of the local Azure stand for recorded ones.
type player struct {
	Target

	learned map[string]string // GUIDs and ETags
	polls   map[string]string // local polling URLs by the recorded ones
	last    map[string]int    // the last poll of each recorded polling URL
	result  Result
}

// Run plays a cassette. The error is one of the local Azure, not a difference.
func Run(ctx context.Context, exchanges []cassette.Exchange, t Target) (Result, error) {
	p := player{
		Target: t, learned: map[string]string{zeros: t.Subscription}, polls: map[string]string{}, last: lastPolls(exchanges),
		result: Result{Skipped: []string{}, Differences: []Difference{}},
	}
	for i, e := range exchanges {
		if err := p.play(ctx, i, e); err != nil {
			return p.result, fmt.Errorf("interaction %d, %s: %w", i, name(e), err)
		}
	}
	return p.result, nil
}

// pollHeaders have the URLs at which operations are polled.
var pollHeaders = []string{"Azure-Asyncoperation", "Operation-Location", "Location"}

// lastPolls returns the last request of each polling URL.
func lastPolls(exchanges []cassette.Exchange) map[string]int {
	last := map[string]int{}
	for i, e := range exchanges {
		if _, polled := last[e.URL]; polled && e.Method == http.MethodGet {
			last[e.URL] = i
		}
		for _, h := range pollHeaders {
			if to := e.AnswerHeader.Get(h); to != "" && last[to] == 0 {
				last[to] = -1 // not polled yet
			}
		}
	}
	return last
}

// name is a request without its host and its api-version.
func name(e cassette.Exchange) string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return e.Method + " " + e.URL
	}
	return e.Method + " " + strings.TrimPrefix(u.Path, "/subscriptions/"+zeros)
}

func (p *player) play(ctx context.Context, i int, e cassette.Exchange) error {
	if at, polled := p.last[e.URL]; polled && e.Method == http.MethodGet {
		if at != i || p.polls[e.URL] == "" {
			p.result.Folded++
			return nil
		}
		return p.poll(ctx, i, e)
	}
	if strings.Contains(strings.ToLower(e.URL), "skiptoken=") {
		p.result.Folded++
		return nil
	}
	body, whole := restored(p.translated(string(e.Body)))
	if !whole {
		p.result.Skipped = append(p.result.Skipped, fmt.Sprintf("%d %s: its body has a redacted file", i, name(e)))
		return nil
	}
	got, err := p.send(ctx, e.Method, p.translated(e.URL), e.Header, body)
	if err != nil {
		return err
	}
	p.learn(e, got)
	p.result.Compared++
	for _, d := range compare(e, got) {
		p.note(i, e, d)
	}
	return nil
}

func (p *player) note(i int, e cassette.Exchange, d Difference) {
	d.Interaction, d.Probe, d.Request = i, e.Probe, name(e)
	p.result.Differences = append(p.result.Differences, d)
}

// poll compares how an operation ended.
func (p *player) poll(ctx context.Context, i int, e cassette.Exchange) error {
	got, err := p.send(ctx, http.MethodGet, p.polls[e.URL], nil, "")
	if err != nil {
		return err
	}
	p.learn(e, got)
	p.result.Compared++
	recorded, local := outcome(e.Status, e.Answer), outcome(got.status, got.body)
	if recorded != local {
		p.note(i, e, Difference{What: "outcome", Recorded: recorded, Local: local})
	}
	return nil
}

// answer is one of the local Azure.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (p *player) send(ctx context.Context, method, to string, header http.Header, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		for _, v := range values {
			r.Header.Add(name, p.translated(v))
		}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	got, err := p.Transport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, text}, err
}

// translatable are the values that differ between a cassette and a local Azure.
var translatable = regexp.MustCompile(`(?:W/)?"[^"\s]{8,80}"|(?:W/)?\\"[^"\s]{8,80}\\"|` + guidPattern)

const guidPattern = `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

var anyGUID = regexp.MustCompile(guidPattern)

// translated replaces what was learned in a text. An ETag counts as a whole.
func (p *player) translated(text string) string {
	guid := func(s string) string {
		if local, ok := p.learned[strings.ToLower(s)]; ok {
			return local
		}
		return s
	}
	return translatable.ReplaceAllStringFunc(text, func(s string) string {
		if local, ok := p.learned[s]; ok {
			return local
		}
		return anyGUID.ReplaceAllStringFunc(s, guid)
	})
}

// learn notes which local values stand at the places of recorded ones, and where local operations are polled.
func (p *player) learn(e cassette.Exchange, got answer) {
	for _, h := range pollHeaders {
		if from, to := e.AnswerHeader.Get(h), got.header.Get(h); from != "" && to != "" {
			p.polls[from] = to
		}
	}
	p.pair(e.AnswerHeader.Get("Etag"), got.header.Get("Etag"))
	p.pairTrees(parse(e.Answer), parse(got.body), "")
}

func (p *player) pair(recorded, local string) {
	if recorded != "" && local != "" {
		p.learned[recorded] = local
	}
}

func (p *player) pairTrees(recorded, local any, name string) {
	switch r := recorded.(type) {
	case string:
		l, ok := local.(string)
		whole := anyGUID.FindString(r) == r && anyGUID.FindString(l) == l
		if ok && l != "" && (whole || strings.EqualFold(name, "etag")) {
			p.pair(strings.ToLower(r), l)
			p.pair(r, l)
		}
	case []any:
		l, _ := local.([]any)
		for i := range min(len(r), len(l)) {
			p.pairTrees(r[i], l[i], name)
		}
	case map[string]any:
		l, _ := local.(map[string]any)
		for name, v := range r {
			p.pairTrees(v, l[name], name)
		}
	}
}

func parse(text []byte) (tree any) {
	if json.Unmarshal(text, &tree) != nil {
		return nil
	}
	return tree
}

// standIns are those for redacted members of requests, by their lower-case names.
var standIns = map[string]string{
	"adminpassword": "Replay-2468!x", "displayname": "kaz", "password": "Replay-2468!x",
	"createdby": "kaz", "lastmodifiedby": "kaz",
}

// restored puts stand-ins into the redacted members of a body. It reports whether all have one.
func restored(body string) (text string, whole bool) {
	tree := parse([]byte(body))
	if tree == nil || !strings.Contains(body, cassette.Redacted) {
		return body, true
	}
	whole = restore(tree)
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(tree) != nil { // a decoded tree can be encoded
		return body, false
	}
	return out.String(), whole
}

func restore(x any) (whole bool) {
	whole = true
	switch x := x.(type) {
	case []any:
		for _, v := range x {
			whole = restore(v) && whole
		}
	case map[string]any:
		for name, v := range x {
			if v != any(cassette.Redacted) {
				whole = restore(v) && whole
				continue
			}
			standIn, ok := standIns[strings.ToLower(name)]
			if _, pfx := x["password"]; pfx && name == "data" {
				file, err := probe.Certificate(standIns["password"])
				standIn, ok = file, err == nil
			}
			if ok {
				x[name] = standIn
			}
			whole = whole && ok
		}
	}
	return whole
}
