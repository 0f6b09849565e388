package web

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// mostStreams is how many event streams can be open.
	mostStreams = 16
	// eventPause is the least time between two events of a stream, heartbeat the longest.
	eventPause = 300 * time.Millisecond
	heartbeat  = 15 * time.Second
)

// sendEvents sends an event whenever the pages may have changed, until the viewer goes.
func (s *Site) sendEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages are open. Close one.", mostStreams), http.StatusServiceUnavailable)
		return
	}
	news, end := s.Recorder.watch()
	defer end()
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	ticks := time.NewTicker(heartbeat)
	defer ticks.Stop()
	for text := "retry: 2000\n\n"; ; {
		if _, err := fmt.Fprint(w, text); err != nil || stream.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			return
		case <-news:
			text = "event: changed\ndata: now\n\n"
		case <-ticks.C:
			text = ": still here\n\n"
		}
		if !pauseFor(r, s.Done, eventPause) {
			return
		}
	}
}

// pauseFor waits. It reports whether the viewer is still there.
func pauseFor(r *http.Request, done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-done:
		return false
	case <-timer.C:
		return true
	}
}
