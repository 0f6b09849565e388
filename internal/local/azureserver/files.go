package azureserver

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"kaz/internal/emulator/plane/file"
)

// openFiles opens the file shares. Their content is beside the state, or in a temporary directory that Close removes.
func (a *Server) openFiles(o Options) error {
	dir := strings.TrimSuffix(o.State, filepath.Ext(o.State)) + "-files"
	if o.State == "" {
		var err error
		if dir, err = os.MkdirTemp("", "kaz-files-"); err != nil {
			return err
		}
		a.closers.add(func() error { return os.RemoveAll(dir) })
	}
	var err error
	if a.files, err = file.Start(file.Config{Tokens: a.tokens, Azure: a.emulator, Dir: dir, Log: a.log}); err != nil {
		return err
	}
	a.closers.add(a.files.Close)
	return nil
}

// Files returns the data plane of file shares.
func (a *Server) Files() *file.Service { return a.files }

// withFiles answers requests to hosts of file services and passes the others on.
func (a *Server) withFiles(others http.Handler) http.Handler {
	var files http.Handler = a.files
	if a.requestLog != nil {
		files = logged(files, a.requestLog)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.files.Answers(r.Host) {
			files.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
