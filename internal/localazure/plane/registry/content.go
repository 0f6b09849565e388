package registry

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// content serves images to authorized clients.
func (v call) content() error {
	n, err := parsePath(v.r.Method, v.r.URL.Path)
	if err != nil {
		return err
	}
	if err := v.authorize(n); err != nil {
		return err
	}
	if n.part == "" {
		writeJSON(v.w, http.StatusOK, map[string]any{})
		return nil
	}
	store, err := v.service.store(v.registry)
	if err != nil {
		return err
	}
	return store.serve(v.w, v.r, n)
}

var (
	repositoryName = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	referenceName  = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9._-]{0,127}|sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
)

// parsePath returns the access that a request such as "/v2/a/b/manifests/latest" needs.
func parsePath(method, path string) (needs, error) {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/v2"), "/"), "/")
	if len(parts) == 1 && parts[0] == "" {
		return needs{}, nil
	}
	if len(parts) == 1 && parts[0] == "_catalog" {
		return needs{part: "_catalog", access: access{"registry", "catalog", []string{"*"}}}, nil
	}
	n, ok := locate(parts)
	if !ok {
		return n, refuse(http.StatusNotFound, "NOT_FOUND", "There is nothing at %s.", path)
	}
	const longest = 255
	if len(n.repository) > longest || !repositoryName.MatchString(n.repository) {
		return n, refuse(http.StatusBadRequest, "NAME_INVALID",
			"The repository name %q is invalid: lower-case letters and digits, with . _ - and / between them, are allowed.", n.repository)
	}
	if n.part == "manifests" && !referenceName.MatchString(n.reference) {
		return n, refuse(http.StatusBadRequest, "TAG_INVALID", "The reference %q is neither a tag nor a digest.", n.reference)
	}
	n.access = access{"repository", n.repository, nil}
	switch method {
	case http.MethodGet, http.MethodHead:
		n.Actions = []string{pull}
	case http.MethodPut, http.MethodPost, http.MethodPatch:
		n.Actions = []string{pull, push}
	case http.MethodDelete:
		n.Actions = []string{remove}
	default:
		return n, refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "The method %s is not supported.", method)
	}
	return n, nil
}

// locate returns the repository of a path. It is before the last reserved word of the path.
func locate(parts []string) (needs, bool) {
	last := len(parts) - 1
	switch {
	case last >= 3 && parts[last-2] == "blobs" && parts[last-1] == "uploads":
		return needs{repository: strings.Join(parts[:last-2], "/"), part: "uploads", reference: parts[last]}, true
	case last >= 2 && parts[last-1] == "blobs" && parts[last] == "uploads":
		return needs{repository: strings.Join(parts[:last-1], "/"), part: "uploads"}, true
	case last >= 2 && parts[last-1] == "tags" && parts[last] == "list":
		return needs{repository: strings.Join(parts[:last-1], "/"), part: "tags"}, true
	case last >= 2 && (parts[last-1] == "manifests" || parts[last-1] == "blobs" || parts[last-1] == "referrers") && parts[last] != "":
		return needs{repository: strings.Join(parts[:last-1], "/"), part: parts[last-1], reference: parts[last]}, true
	}
	return needs{}, false
}

// authorize checks that the request has the access that it needs.
func (v call) authorize(n needs) error {
	if user, password, ok := v.r.BasicAuth(); ok {
		h, err := v.login(user, password)
		if err != nil {
			return v.challenge(n, "")
		}
		may := v.service.allowedActions(h, v.registry)
		if len(may) == 0 || !n.permits(grant([]access{n.access}, may)) {
			e := refuse(http.StatusForbidden, "DENIED", "requested access to the resource is denied")
			e.detail = n.details()
			return e
		}
		return nil
	}
	text, ok := strings.CutPrefix(v.r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return v.challenge(n, "")
	}
	t, err := v.service.open(text, accessKind, v.registry.server, time.Now())
	if err != nil {
		return v.challenge(n, "invalid_token")
	}
	if !n.permits(t.Access) {
		return v.challenge(n, "insufficient_scope")
	}
	return nil
}

// challenge answers with the address at which the client gets a token.
func (v call) challenge(n needs, problem string) error {
	e := unauthorized()
	e.challenge = fmt.Sprintf(`Bearer realm="https://%s/oauth2/token",service="%s"`, strings.ToLower(v.r.Host), v.registry.server)
	if scope := n.scope(); scope != "" {
		e.challenge += fmt.Sprintf(`,scope="%s"`, scope)
	}
	if problem != "" {
		e.challenge += fmt.Sprintf(`,error="%s"`, problem)
	}
	e.detail = n.details()
	return e
}

func (n needs) details() any {
	var all []any
	for _, action := range n.Actions {
		all = append(all, map[string]string{"Type": n.Type, "Name": n.Name, "Action": action})
	}
	if all == nil {
		return nil
	}
	return all
}
