package server

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"kaz/internal/component/release"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/core"
)

// healthPath is the path that says that the local Azure serves.
const healthPath = "/health"

// health answers healthPath, for which no token is needed. It has nothing secret.
type health struct{ server *Server }

// Handler implements plane.
func (h health) Handler(path string) http.Handler {
	if path != healthPath {
		return nil
	}
	return http.HandlerFunc(h.answer)
}

func (h health) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		reply(w, http.StatusMethodNotAllowed, adminError("MethodNotAllowed", "want GET or HEAD"))
		return
	}
	status, state := http.StatusOK, "serving"
	select {
	case <-h.server.closing:
		status, state = http.StatusServiceUnavailable, "stopping"
	default:
	}
	reply(w, status, map[string]string{"version": release.Version(), "state": state})
}

// admin answers the administrative requests of kaz. Only clients of this machine with the administrative token reach it.
type admin struct {
	server *Server
	token  string
	since  time.Time
	reset  func() (resources int, err error)
}

// adminCall answers one administrative request: what is sent back, or an error.
type adminCall func(a *admin, body []byte, argument string) (any, error)

// adminCalls are the administrative requests by method and path. A path that ends with a slash has an argument behind it.
var adminCalls = map[string]adminCall{
	"GET status":     func(a *admin, _ []byte, _ string) (any, error) { return a.status(), nil },
	"POST reset":     (*admin).clear,
	"PATCH settings": (*admin).change,
	"GET faults":     func(a *admin, _ []byte, _ string) (any, error) { return a.faults(), nil },
	"POST faults":    (*admin).addFault,
	"DELETE faults":  (*admin).clearFaults,
	"DELETE faults/": (*admin).removeFault,
}

// Handler implements plane.
func (a *admin) Handler(path string) http.Handler {
	if !strings.HasPrefix(path, client.AdminPath) {
		return nil
	}
	return http.HandlerFunc(a.answer)
}

func (a *admin) answer(w http.ResponseWriter, r *http.Request) {
	if !a.admits(r) {
		reply(w, http.StatusForbidden, adminError("Forbidden", "administrative requests need the administrative token, from this machine"))
		return
	}
	call, argument, known := findCall(r.Method, strings.TrimPrefix(r.URL.Path, client.AdminPath))
	if !known {
		reply(w, http.StatusNotFound, adminError("NotFound", "there is no administrative request "+r.Method+" "+r.URL.Path))
		return
	}
	const most = 1 << 20
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		var answer any
		if answer, err = call(a, body, argument); err == nil {
			reply(w, http.StatusOK, answer)
			return
		}
	}
	status := http.StatusBadRequest
	if errors.Is(err, errNoFault) {
		status = http.StatusNotFound
	}
	reply(w, status, adminError("InvalidRequest", err.Error()))
}

func findCall(method, path string) (call adminCall, argument string, known bool) {
	if call, known = adminCalls[method+" "+path]; known {
		return call, "", true
	}
	head, argument, _ := strings.Cut(path, "/")
	call, known = adminCalls[method+" "+head+"/"]
	return call, argument, known
}

// admits reports whether a request comes from this machine with the token. The Host of a request that came through the proxy, or from
// a web page, is another one.
func (a *admin) admits(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() || !isHost(r) {
		return false
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return bearer && subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

func adminError(code, message string) any {
	return map[string]any{"error": map[string]string{"code": code, "message": message}}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

func (a *admin) status() client.Status {
	settings := a.server.emulator.Settings()
	throttle := "off"
	if settings.Throttle {
		throttle = throttleOn
	}
	return client.Status{
		Version: release.Version(), Since: a.since.UTC().Truncate(time.Second), Resources: a.server.emulator.Stored(),
		Latency: formatLatency(settings.Latency), Throttle: throttle, Quotas: settings.Quotas,
		Faults: len(a.server.emulator.Faults.All()),
	}
}

func (a *admin) clear([]byte, string) (any, error) {
	count, err := a.reset()
	return client.Removed{Resources: count}, err
}

// change changes the settings that a request names, all or none.
func (a *admin) change(body []byte, _ string) (any, error) {
	var s client.Settings
	if err := decodeStrictly(body, &s); err != nil {
		return nil, err
	}
	var latency float64
	var throttle bool
	var problems []error
	note := func(err error) { problems = append(problems, err) }
	if s.Latency != nil {
		factor, err := parseLatency(*s.Latency)
		latency = factor
		note(err)
	}
	if s.Throttle != nil {
		on, err := choose("--throttle", *s.Throttle, throttleOn)
		throttle = on
		note(err)
	}
	quotas, err := parseQuotas(s.Quotas)
	note(err)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	emulator := a.server.emulator
	if len(quotas) > 0 {
		if err := emulator.SetQuotas(quotas); err != nil {
			return nil, err
		}
	}
	if s.Latency != nil {
		emulator.SetLatency(latency)
	}
	if s.Throttle != nil {
		emulator.SetThrottle(throttle)
	}
	return a.status(), nil
}

// faultList are rules on their way to a client.
type faultList struct {
	Faults []core.CountedFault `json:"faults"`
}

func (a *admin) faults() faultList { return faultList{a.server.emulator.Faults.All()} }

func (a *admin) addFault(body []byte, _ string) (any, error) {
	var rule core.Fault
	if err := decodeStrictly(body, &rule); err != nil {
		return nil, err
	}
	return a.server.emulator.Faults.Add(rule)
}

func (a *admin) clearFaults([]byte, string) (any, error) {
	removed := a.faults()
	return removed, a.server.emulator.SetFaults(nil)
}

var errNoFault = errors.New("there is no fault rule with this number")

func (a *admin) removeFault(_ []byte, argument string) (any, error) {
	id, err := strconv.Atoi(argument)
	if err != nil {
		return nil, fmt.Errorf("fault rule %q: want a number that the list of fault rules has", argument)
	}
	if !a.server.emulator.Faults.Remove(id) {
		return nil, fmt.Errorf("fault rule %d: %w", id, errNoFault)
	}
	return a.faults(), nil
}

func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("the request is not as expected: %w", err)
	}
	return nil
}

// clearer returns the function that makes this Azure as it was at a first start: without resources but for the role assignments of the
// identities file and the account of clients of emulators.
func (a *Server) clearer(o Options, s settings) func() (int, error) {
	return func() (int, error) {
		count, err := a.emulator.Clear()
		err = errors.Join(err, a.assignRoles(s.identities))
		_, failed := emulate(a, o)
		return count, errors.Join(err, failed)
	}
}

// formatLatency is the reverse of parseLatency.
func formatLatency(factor float64) string {
	switch factor {
	case 0:
		return "off"
	case 1:
		return latencyFull
	}
	return strconv.FormatFloat(factor, 'g', -1, 64)
}
