package dataplane

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The names of the blobs in a cluster's container. The boot files of machines use the same names. electionBlob names the
// machine that initializes the cluster, and latestBlob the newest backup of etcd. With the backup in restoreBlob the next
// first member starts.
const (
	electionBlob = "initialized"
	latestBlob   = "etcd/latest"
	restoreBlob  = "restore"
)

// Container is the container of a cluster, with its backups.
type Container struct {
	Client
	// URL is the address of the container.
	URL string
	// Cluster is the name of the cluster, and Seal returns what signs its backups. Only backups need them.
	Cluster string
	Seal    func(ctx context.Context) (Seal, error)
}

// Save stores a backup under a name with its signature, and then names it as the newest one.
func (c Container) Save(ctx context.Context, name string, backup *os.File) (string, error) {
	name = "etcd/" + name
	sum, err := sumOf(backup)
	if err != nil {
		return "", err
	}
	at, err := c.PutBlob(ctx, c.URL, name, backup)
	if err != nil {
		return "", err
	}
	if err := c.sign(ctx, name, sum); err != nil {
		return "", err
	}
	return at, c.put(ctx, latestBlob, name)
}

// backupName is the name of a backup. It begins with its time, so the order of names is that of age.
var backupName = regexp.MustCompile(`^etcd/\d{8}T\d{6}Z-\d+\.db$`)

// Prune deletes backups but the newest ones, and returns those that it deleted. Other blobs stay, and all backups while one is marked.
// With keep 0 all backups stay.
func (c Container) Prune(ctx context.Context, keep int) ([]string, error) {
	if keep <= 0 {
		return nil, nil
	}
	if marked, err := c.Marked(ctx); err != nil || marked != "" {
		return nil, err
	}
	names, err := c.list(ctx, "etcd/")
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !backupName.MatchString(name) })
	slices.Sort(names)
	old := names[:max(0, len(names)-keep)]
	for i, name := range old {
		for _, blob := range []string{signatureOf(name), name} { // the list has backups only
			if err := c.remove(ctx, blob); err != nil {
				return old[:i], err
			}
		}
	}
	return old, nil
}

// list is the names of the blobs that begin with a prefix.
func (c Container) list(ctx context.Context, prefix string) ([]string, error) {
	var all []string
	for marker, more := "", true; more; {
		query := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}}
		if marker != "" {
			query.Set("marker", marker)
		}
		text, err := c.send(ctx, http.MethodGet, c.URL+"?"+query.Encode(), "")
		if err != nil {
			return nil, err
		}
		var page struct {
			Names []string `xml:"Blobs>Blob>Name"`
			Next  string   `xml:"NextMarker"`
		}
		if err := xml.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("blobs of %s: %w", c.URL, err)
		}
		all = append(all, page.Names...)
		marker, more = page.Next, page.Next != ""
	}
	return all, nil
}

// Latest is the name of the newest backup, "" for none.
func (c Container) Latest(ctx context.Context) (string, error) { return c.text(ctx, latestBlob) }

// Has reports whether there is a backup of this name.
func (c Container) Has(ctx context.Context, name string) (bool, error) {
	if name == "" || strings.Contains(name, "..") || strings.ContainsAny(name, "?#%\\ ") {
		return false, fmt.Errorf("backup %q: want the name of a blob such as etcd/20260102T030405Z-1234.db", name)
	}
	_, err := c.ask(ctx, http.MethodHead, name, "")
	if errors.Is(err, errAbsent) {
		return false, nil
	}
	return err == nil, err
}

// Marked is the name of the backup with which the next first member begins, "" for none.
func (c Container) Marked(ctx context.Context) (string, error) { return c.text(ctx, restoreBlob) }

// Mark opens the election of the first member again, and then marks a backup. In this order a marked backup means an open election.
func (c Container) Mark(ctx context.Context, name string) error {
	if err := c.remove(ctx, electionBlob); err != nil {
		return err
	}
	return c.put(ctx, restoreBlob, name)
}

// Release takes the mark away.
func (c Container) Release(ctx context.Context) error { return c.remove(ctx, restoreBlob) }

var errAbsent = errors.New("there is no such blob")

// ask sends a request about a blob. A text is what the blob is to have.
func (c Container) ask(ctx context.Context, method, name, text string) ([]byte, error) {
	return c.send(ctx, method, c.URL+"/"+name, text)
}

// send sends a request with further headers, each a name and a value.
func (c Container) send(ctx context.Context, method, address, text string, headers ...string) ([]byte, error) {
	var body io.Reader = http.NoBody
	if method == http.MethodPut {
		body = bytes.NewReader([]byte(text))
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-ms-version", blobVersion)
	if method == http.MethodPut {
		r.Header.Set("x-ms-blob-type", "BlockBlob")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.do(ctx, storageScope, r)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound {
		return nil, fmt.Errorf("blob %s: %w", address, errAbsent)
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", address, err)
	}
	return answer, nil
}

func (c Container) put(ctx context.Context, name, text string) error {
	_, err := c.ask(ctx, http.MethodPut, name, text)
	return err
}

func (c Container) text(ctx context.Context, name string) (string, error) {
	text, err := c.ask(ctx, http.MethodGet, name, "")
	if errors.Is(err, errAbsent) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

func (c Container) remove(ctx context.Context, name string) error {
	_, err := c.ask(ctx, http.MethodDelete, name, "")
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}
