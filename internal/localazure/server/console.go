package server

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/inventory"
)

// openConsole opens what the console of a machine has shown.
func (a *Server) openConsole(machine azure.ID) (io.ReadCloser, error) {
	name := ""
	a.Look(func(w behaviour.World) {
		doc, _ := w.Get(machine)
		name = inventory.Name(doc)
	})
	if a.consoleLog == nil || !filepath.IsLocal(name) {
		return nil, fs.ErrNotExist
	}
	return os.Open(a.consoleLog(name))
}
