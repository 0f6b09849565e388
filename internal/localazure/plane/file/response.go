package file

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"kaz/internal/localazure/behaviour"
)

// response is the answer to a request.
type response struct {
	log *slog.Logger
	w   http.ResponseWriter
	id  string // of the request
}

// begin writes the headers of all answers.
func (a *response) begin(r *http.Request) {
	h := a.w.Header()
	h.Set("Server", "Windows-Azure-File/1.0 Microsoft-HTTPAPI/2.0")
	h.Set("x-ms-request-id", a.id)
	if id := r.Header.Get("x-ms-client-request-id"); id != "" {
		h.Set("x-ms-client-request-id", id)
	}
	if version := r.Header.Get("x-ms-version"); version != "" {
		h.Set("x-ms-version", version)
	}
}

// fail answers with an error.
func (a *response) fail(r *http.Request, err error) {
	e := refused(err)
	if e == nil {
		a.log.Error("request to file shares", "method", r.Method, "path", r.URL.Path, "error", err)
		e = refuse(http.StatusInternalServerError, "InternalError", "The server encountered an internal error. Please retry the request.")
	}
	a.w.Header().Set("x-ms-error-code", e.code)
	if r.Method == http.MethodHead {
		a.w.WriteHeader(e.status)
		return
	}
	message := fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.message, a.id, behaviour.Timestamp(time.Now()))
	a.xml(e.status, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: e.code, Message: message})
}

// xml answers with a document.
func (a *response) xml(status int, document any) {
	text, err := xml.Marshal(document)
	if err != nil {
		a.log.Error("answer of file shares", "error", err)
		status, text = http.StatusInternalServerError, nil
	}
	a.w.Header().Set("Content-Type", "application/xml")
	a.w.WriteHeader(status)
	_, _ = a.w.Write(append([]byte(xml.Header), text...)) // the client is gone
}

// shareStamp writes the ETag and the time of the last change.
func (a *response) shareStamp(doc behaviour.Object) {
	h := a.w.Header()
	h.Set("ETag", behaviour.Text(doc, "etag"))
	h.Set("Last-Modified", httpTime(behaviour.Text(doc, "properties.lastModifiedTime")))
}

// stamp writes the headers that all answers about a file or directory have.
func (a *response) stamp(h *handle) {
	header := a.w.Header()
	header.Set("ETag", h.etag())
	header.Set("Last-Modified", h.info.ModTime().UTC().Format(http.TimeFormat))
	header.Set("x-ms-file-last-write-time", behaviour.Timestamp(h.info.ModTime()))
	header.Set("x-ms-file-change-time", behaviour.Timestamp(h.info.ModTime()))
	created := h.Created
	if created.IsZero() {
		created = h.info.ModTime()
	}
	header.Set("x-ms-file-creation-time", behaviour.Timestamp(created))
	id, parent := idOf(h.info), "0"
	if info, err := h.share.root.Lstat(parentOf(h.name)); err == nil {
		parent = idOf(info)
	}
	header.Set("x-ms-file-id", id)
	header.Set("x-ms-file-parent-id", parent)
	if h.share.nfs {
		a.stampNFS(h.info)
		return
	}
	header.Set("x-ms-file-attributes", cmp.Or(h.Attributes, defaultAttributes(h.info)))
	header.Set("x-ms-file-permission-key", "0")
}

// stampNFS writes the headers of files of NFS shares.
func (a *response) stampNFS(info fs.FileInfo) {
	header := a.w.Header()
	header.Set("x-ms-mode", fmt.Sprintf("%04o", modeOf(info.Mode())))
	kind := map[fs.FileMode]string{0: "Regular", fs.ModeDir: "Directory", fs.ModeSymlink: "SymLink"}[info.Mode().Type()]
	header.Set("x-ms-file-file-type", kind)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		header.Set("x-ms-owner", strconv.Itoa(int(stat.Uid)))
		header.Set("x-ms-group", strconv.Itoa(int(stat.Gid)))
		header.Set("x-ms-link-count", strconv.Itoa(int(stat.Nlink)))
	}
}

// showProperties writes the headers of a file's own properties.
func (a *response) showProperties(h *handle) {
	header := a.w.Header()
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if h.Headers[name] != "" {
			header.Set(name, h.Headers[name])
		}
	}
	for name, value := range h.Metadata {
		setMeta(header, name, value)
	}
}

// setMeta sets a header of metadata. Its name keeps its case.
func setMeta(h http.Header, name, value string) { h["x-ms-meta-"+name] = []string{value} }

// answer answers with the headers of a changed file or directory.
func (a *response) answer(h *handle, status int) error {
	if err := h.refresh(); err != nil {
		return err
	}
	a.stamp(h)
	a.w.Header().Set("x-ms-request-server-encrypted", "true")
	a.w.WriteHeader(status)
	return nil
}
