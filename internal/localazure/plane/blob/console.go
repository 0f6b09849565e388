package blob

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/plane/account"
)

// checkConsole returns why the request may not read the container with the console of a machine. It has one blob, which Azure writes.
func (c *call) checkConsole(w behaviour.World, o operation, t target) error {
	doc, _ := w.Get(c.machine)
	d, _ := vm.DiagnosticsOf(doc)
	if c.caller != nil && d.Managed {
		return refuse(http.StatusForbidden, "AuthorizationFailure", "This request is not authorized to perform this operation.")
	}
	if err := c.checkRights(w, o, t); err != nil {
		return err
	}
	switch {
	case o.action != blobsRead || c.blob == "":
		return account.Mismatch(account.Permission, "permission")
	case c.blob != d.Log:
		return noBlob()
	}
	return nil
}

// console answers with what the console of a machine has shown.
func (c *call) console() error {
	if c.service.Console == nil {
		return noBlob()
	}
	log, err := c.service.Console(c.machine)
	if errors.Is(err, fs.ErrNotExist) {
		return noBlob()
	}
	if err != nil {
		return err
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Type", "text/plain")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	header.Set("x-ms-blob-type", "BlockBlob")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodGet {
		_, _ = c.w.Write(text) // the client is gone
	}
	return nil
}
