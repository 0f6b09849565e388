package front

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// logLine is one request in the request log.
type logLine struct {
	Time      string  `json:"time"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Version   string  `json:"apiVersion,omitempty"`
	Status    int     `json:"status"`
	Code      string  `json:"errorCode,omitempty"`
	Duration  float64 `json:"durationMs"`
	UserAgent string  `json:"userAgent,omitempty"`
	In        int     `json:"bytesIn"`
	Out       int     `json:"bytesOut"`
}

// requestLog writes JSON lines.
type requestLog struct {
	mu sync.Mutex
	to io.Writer
}

func (l *requestLog) write(r *exchange, began time.Time, out int) error {
	line := logLine{
		Time: began.UTC().Format(time.RFC3339Nano), Method: r.Method, Path: r.URL.Path, Version: r.Version,
		Status: r.reply.Status, Code: r.refused, Duration: float64(time.Since(began).Microseconds()) / 1000,
		UserAgent: r.http.UserAgent(), In: r.bytesIn, Out: out,
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.to.Write(append(text, '\n'))
	return err
}
