package file

import (
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
)

// pathCall is a request about a directory or a file.
type pathCall struct{ *call }

func (c pathCall) setMetadata() error {
	return c.modify(os.O_RDONLY, func(h *handle) error {
		h.Metadata = metadataOf(c.r.Header)
		if err := h.write(h.File); err != nil {
			return err
		}
		return c.answer(h, http.StatusOK)
	})
}

// rename moves a file or directory of the same share to the target of the request.
func (c pathCall) rename() error {
	source, err := url.Parse(c.r.Header.Get("x-ms-file-rename-source"))
	if err != nil || source.Path == "" {
		return missingHeader("x-ms-file-rename-source")
	}
	if c.target.scope == directoryScope {
		source.RawQuery = "restype=directory"
	}
	from, err := parseTarget(source)
	if err != nil {
		return err
	}
	if !strings.EqualFold(from.share, c.target.share) || accountOf(source.Host) != c.account.name {
		return invalidHeader("x-ms-file-rename-source", source.Redacted(), "a path in the same share")
	}
	return c.change(func(o *opened) error {
		old, _, err := o.findKind(from)
		if err != nil {
			return err
		}
		name, err := c.newName(o, old)
		if err != nil {
			return err
		}
		if err := o.root.Rename(old, name); err != nil {
			return err
		}
		h, err := o.open(name, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer h.Close()
		return c.answer(h, http.StatusOK)
	})
}

// newName returns the name that a renamed file or directory gets, unless another one has it.
func (c pathCall) newName(o *opened, old string) (string, error) {
	name, info, err := o.find(c.target)
	switch {
	case isMissing(err):
		return name, nil
	case err != nil:
		return "", err
	case old == name: // only the case differs
		return path.Join(parentOf(name), c.target.parts[len(c.target.parts)-1]), nil
	case info.IsDir() || !strings.EqualFold(c.r.Header.Get("x-ms-file-rename-replace-if-exists"), "true"):
		return "", refuse(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
	}
	return name, nil
}

// isMissing reports that a file does not exist, and its directory does.
func isMissing(err error) bool {
	if err == nil {
		return false
	}
	r := refused(err)
	return r != nil && r.code == "ResourceNotFound"
}
