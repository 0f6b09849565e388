package file_test

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"kaz/internal/localazure/core"
)

// filesMethod stands for writes to the file service.
const filesMethod = "FILES"

// fileFault lets one write to the file service go wrong, as the faults of the local Azure do it with Azure Resource Manager.
type fileFault struct {
	rule  core.Fault
	nth   int
	crash func(core.Fault)

	mu       sync.Mutex
	writes   int
	happened bool
	failed   string // path of a file whose copy failed, until the driver reads it
}

// reached reports whether there were so many writes.
func (f *fileFault) reached() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.happened
}

func (f *fileFault) do(r *http.Request, serve func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if f.reads(r) {
		got := answer(r, http.StatusOK, "")
		got.Header.Set("x-ms-copy-status", "failed")
		return got, nil
	}
	if !f.hits(r) {
		return serve(r)
	}
	switch f.rule.Fault {
	case core.FaultError:
		got := answer(r, f.rule.Status, cmp.Or(f.rule.Code, "Refused"))
		got.Header.Set("Retry-After", strconv.Itoa(f.rule.RetryAfter))
		return got, nil
	case core.FaultOperation:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failed = r.URL.Path
		return pendingCopy(r), nil
	case "": // Azure reports the write and does not make it
		return pendingCopy(r), nil
	}
	got, err := serve(r)
	if err == nil {
		err = errors.Join(got.Body.Close(), errors.New("the answer is lost"))
	}
	if f.rule.Fault == core.FaultCrash {
		f.crash(f.rule)
	}
	return nil, err
}

func pendingCopy(r *http.Request) *http.Response {
	got := answer(r, http.StatusAccepted, "")
	got.Header.Set("x-ms-copy-status", "pending")
	return got
}

// hits reports whether a request is the write that goes wrong. Only copies have an end that can differ from their answer.
func (f *fileFault) hits(r *http.Request) bool {
	ends := f.rule.Fault == core.FaultOperation || f.rule.Fault == ""
	if r.Method != http.MethodPut || ends && !isCopy(r) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.happened = f.happened || f.writes == f.nth
	return f.writes == f.nth
}

// reads reports whether a request reads a file whose copy failed. It does so once: then the file is not there.
func (f *fileFault) reads(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method != http.MethodHead || f.failed == "" || f.failed != r.URL.Path {
		return false
	}
	f.failed = ""
	return true
}
