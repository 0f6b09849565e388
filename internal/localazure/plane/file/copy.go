package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kaz/internal/localazure/plane/file/content"
	"kaz/internal/localazure/plane/octets"
)

// copyState is the last copy to a file.
type copyState struct {
	ID, Status  string
	Source      string // without a signature
	Description string `json:",omitempty"`
	Done, Total int64
	Completed   time.Time `json:",omitzero"`
}

// The states of copies.
const (
	pending   = "pending"
	succeeded = "success"
	aborted   = "aborted"
	broken    = "failed"
)

// copies are the copies that run.
type copies struct {
	mu      sync.Mutex
	running map[string]*copyJob // by the path of the target
	tasks   sync.WaitGroup
	stopped bool
	// hold delays copies in tests.
	hold func(ctx context.Context)
}

// copyJob is a copy that runs. Its state belongs to the mutex of copies.
type copyJob struct {
	state copyState
	stop  context.CancelFunc
	done  chan struct{}
}

// close ends the copies that run.
func (c *copies) close() {
	c.mu.Lock()
	c.stopped = true
	for _, job := range c.running {
		job.stop()
	}
	c.mu.Unlock()
	c.tasks.Wait()
}

func key(o *opened, name string) string { return filepath.Join(o.root.Name(), name) }

// find returns the state of the copy that runs to a file.
func (c *copies) find(o *opened, name string) (copyState, *copyJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.running[key(o, name)]; job != nil {
		return job.state, job
	}
	return copyState{}, nil
}

// refusePending refuses a change of a file to which a copy runs.
func (c *copies) refusePending(o *opened, name string) error {
	if _, job := c.find(o, name); job != nil {
		return refuse(http.StatusConflict, "PendingCopyOperation", "There is currently a pending copy operation.")
	}
	return nil
}

// ended returns the state of the last copy to a file, which does not run now.
func ended(f *handle) copyState {
	if f.Copy.Status != pending {
		return *f.Copy
	}
	// It may have ended after the properties were read, which was after the file was opened.
	if now, err := readProperties(f.File); err == nil && now.Copy != nil && now.Copy.Status != pending {
		return *now.Copy
	}
	state := *f.Copy // of an earlier process
	state.Status, state.Description = broken, "the local Azure was stopped"
	return state
}

// show writes the headers of the last copy to a file.
func (c *copies) show(h http.Header, f *handle) {
	state, job := c.find(f.share, f.name)
	if job == nil {
		if f.Copy == nil {
			return
		}
		state = ended(f)
	}
	h.Set("x-ms-copy-id", state.ID)
	h.Set("x-ms-copy-status", state.Status)
	h.Set("x-ms-copy-source", state.Source)
	h.Set("x-ms-copy-progress", fmt.Sprintf("%d/%d", state.Done, state.Total))
	if state.Description != "" {
		h.Set("x-ms-copy-status-description", state.Description)
	}
	if !state.Completed.IsZero() {
		h.Set("x-ms-copy-completion-time", state.Completed.UTC().Format(http.TimeFormat))
	}
}

// source is the file of x-ms-copy-source.
type source struct {
	url    *url.URL
	share  *opened
	handle *handle
}

func (s *source) close() error { return errors.Join(s.handle.Close(), s.share.root.Close()) }

// copyCall is a request that copies a file, or a range of one.
type copyCall struct{ *call }

// openSource checks that the request may read the source of a copy, and opens it. If withinAccount is true, the
// authorization of the request is enough for files of the same account.
func (c copyCall) openSource(withinAccount bool) (*source, error) {
	text := c.r.Header.Get("x-ms-copy-source")
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, invalidHeader("x-ms-copy-source", text, "a URL")
	}
	unverified := refuse(http.StatusNotFound, "CannotVerifyCopySource", "The specified source cannot be verified.")
	a, ok := c.service.find(accountOf(u.Host))
	if !ok {
		return nil, unverified
	}
	t, err := parseTarget(u)
	if err != nil || t.scope != fileScope {
		return nil, unverified
	}
	if err := c.authorizer().checkSource(a, t, u, withinAccount && a.id.Equal(c.account.id)); err != nil {
		if r := refused(err); r != nil {
			return nil, &refusal{http.StatusForbidden, "CannotVerifyCopySource", r.message}
		}
		return nil, err
	}
	o, err := c.service.open(c.r, a, t)
	if err != nil {
		return nil, err
	}
	h, err := openFile(o, t)
	if err != nil {
		return nil, errors.Join(err, o.root.Close())
	}
	return &source{u, o, h}, nil
}

func openFile(o *opened, t target) (*handle, error) {
	name, info, err := o.findKind(t)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, wrongType()
	}
	return o.open(name, os.O_RDONLY)
}

// sourceData returns the range of another file that a request copies, and writes the sum of it.
func (c copyCall) sourceData(length int64) ([]byte, error) {
	text := c.r.Header.Get("x-ms-source-range")
	if text == "" {
		return nil, missingHeader("x-ms-source-range")
	}
	from, err := octets.Parse("x-ms-source-range", text)
	if err != nil {
		return nil, err
	}
	if from.To-from.From != length {
		return nil, invalidHeader("x-ms-source-range", text, "a range of "+formatInt(length)+" bytes as x-ms-range has")
	}
	s, err := c.openSource(false)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if from.To > s.handle.info.Size() {
		return nil, octets.Outside(text, s.handle.info.Size())
	}
	data := make([]byte, length)
	if _, err := s.handle.ReadAt(data, from.From); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := octets.CheckCRC64(c.r.Header.Get("x-ms-source-content-crc64"), data); err != nil {
		return nil, err
	}
	c.w.Header().Set("x-ms-content-crc64", octets.CRC64(data))
	return data, nil
}

// promptCopy is the time that a request waits for its copy. Copies that take longer are pending in its answer.
const promptCopy = 50 * time.Millisecond

// start begins to copy a file.
func (c copyCall) start() error {
	s, err := c.openSource(true)
	if err != nil {
		return err
	}
	var job *copyJob
	err = c.change(func(o *opened) error {
		h, err := fileCall(c).make(o, s.handle.info.Size())
		if err != nil {
			return err
		}
		if err := c.describe(h, s); err != nil {
			return errors.Join(err, h.Close())
		}
		// The copy outlives the request, and so do its files.
		own, err := os.OpenRoot(o.root.Name())
		if err != nil {
			return errors.Join(err, h.Close())
		}
		kept := *o
		kept.root, h.share = own, &kept
		job = c.service.copies.begin(c.service, s, h)
		return nil
	})
	if err != nil {
		return errors.Join(err, s.close())
	}
	timer := time.NewTimer(promptCopy)
	defer timer.Stop()
	select {
	case <-job.done:
	case <-timer.C:
	}
	return c.answerCopy(job)
}

// describe gives the target the properties of the request or, where it has none, of the source.
func (c copyCall) describe(h *handle, s *source) error {
	h.Metadata, h.Headers = s.handle.Metadata, s.handle.Headers
	if given := metadataOf(c.r.Header); len(given) > 0 {
		h.Metadata = given
	}
	if strings.EqualFold(c.r.Header.Get("x-ms-file-attributes"), "source") {
		h.Attributes = s.handle.Attributes
	} else if err := h.read(c.r.Header); err != nil {
		return err
	}
	if strings.EqualFold(c.r.Header.Get("x-ms-file-creation-time"), "source") {
		h.Created = s.handle.Created
	}
	shown := *s.url
	shown.RawQuery = ""
	if at := s.url.Query().Get("sharesnapshot"); at != "" {
		shown.RawQuery = url.Values{"sharesnapshot": {at}}.Encode()
	}
	h.Copy = &copyState{ID: newGUID(), Status: pending, Source: shown.String(), Total: s.handle.info.Size()}
	if err := h.write(h.File); err != nil {
		return err
	}
	return h.applyOwner(c.r.Header)
}

// answerCopy answers with the state of a copy.
func (c copyCall) answerCopy(job *copyJob) error {
	c.service.copies.mu.Lock()
	state := job.state
	c.service.copies.mu.Unlock()
	return c.look(func(h *handle) error {
		c.w.Header().Set("ETag", h.etag())
		c.w.Header().Set("Last-Modified", h.info.ModTime().UTC().Format(http.TimeFormat))
		c.w.Header().Set("x-ms-copy-id", state.ID)
		c.w.Header().Set("x-ms-copy-status", state.Status)
		c.w.WriteHeader(http.StatusAccepted)
		return nil
	})
}

// begin runs a copy, which closes the files.
func (c *copies) begin(service *Service, s *source, h *handle) *copyJob {
	ctx, stop := context.WithCancel(context.Background())
	job := &copyJob{state: *h.Copy, stop: stop, done: make(chan struct{})}
	at := key(h.share, h.name)
	c.mu.Lock()
	c.running[at] = job
	if c.stopped {
		stop()
	}
	c.mu.Unlock()
	c.tasks.Go(func() {
		defer close(job.done)
		if c.hold != nil {
			c.hold(ctx)
		}
		err := c.run(ctx, service, job, s, h)
		stop()
		c.end(job, h, err)
		c.mu.Lock()
		delete(c.running, at)
		c.mu.Unlock()
		service.try("close a copied file", errors.Join(s.close(), h.Close(), h.share.root.Close()))
	})
	return job
}

// run copies what is no hole.
func (c *copies) run(ctx context.Context, service *Service, job *copyJob, s *source, h *handle) error {
	ranges, err := content.Ranges(s.handle.File, octets.Range{To: s.handle.info.Size()})
	if err != nil {
		return err
	}
	buffer := make([]byte, largestRange)
	for _, r := range ranges {
		for at := r.From; at < r.To; {
			if err := ctx.Err(); err != nil {
				return err
			}
			part := buffer[:min(int64(len(buffer)), r.To-at)]
			if _, err := s.handle.ReadAt(part, at); err != nil {
				return err
			}
			if err := service.content.Write(func() error { _, err := h.WriteAt(part, at); return err }); err != nil {
				return err
			}
			at += int64(len(part))
			c.mu.Lock()
			job.state.Done = at
			c.mu.Unlock()
		}
	}
	return ctx.Err()
}

// end stores how a copy ended. The target of one that did not succeed is empty.
func (c *copies) end(job *copyJob, h *handle, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := &job.state
	state.Completed = time.Now().UTC()
	switch {
	case err == nil:
		state.Status, state.Done = succeeded, state.Total
	case c.stopped:
		state.Status, state.Description = broken, "the local Azure was stopped"
	case errors.Is(err, context.Canceled):
		state.Status = aborted
	default:
		state.Status, state.Description = broken, err.Error()
	}
	if state.Status != succeeded {
		err = h.Truncate(0)
	}
	h.Copy = state
	if writeErr := h.write(h.File); err != nil || writeErr != nil {
		state.Status, state.Description = broken, errors.Join(err, writeErr).Error()
	}
}

// abort ends a copy that runs.
func (c copyCall) abort() error {
	if action := c.r.Header.Get("x-ms-copy-action"); action != "abort" {
		return invalidHeader("x-ms-copy-action", action, "abort")
	}
	return c.with(func(o *opened) error {
		name, _, err := o.findKind(c.target)
		if err != nil {
			return err
		}
		state, job := c.service.copies.find(o, name)
		if job == nil {
			return refuse(http.StatusConflict, "NoPendingCopyOperation", "There is currently no pending copy operation.")
		}
		if state.ID != c.query.Get("copyid") {
			return refuse(http.StatusConflict, "CopyIdMismatch",
				"The specified copy ID did not match the copy ID for the pending copy operation.")
		}
		job.stop()
		<-job.done
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	})
}
