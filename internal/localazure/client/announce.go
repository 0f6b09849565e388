package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kaz/internal/host/atomicfile"
)

// Info describes a running local Azure to its clients. `kaz local azure` prints it as one line of JSON.
type Info struct {
	// ARM and ARMHTTP are the base URLs of Azure Resource Manager with and without TLS.
	ARM     string `json:"arm"`
	ARMHTTP string `json:"armHTTP"`
	// CAFile is the certificate authority that signed the server's certificate.
	CAFile       string `json:"caFile"`
	Tenant       string `json:"tenant"`
	Subscription string `json:"subscription"`
	// Token is a bearer token with all rights.
	Token string `json:"token"`
	// AdminToken is the token of administrative requests, which clients of this machine send below [AdminPath].
	AdminToken string `json:"adminToken"`
	// Web is the link to the web page, with the token of that page.
	Web string `json:"web"`
	// TokenEndpoint issues tokens for ClientID and ClientSecret.
	TokenEndpoint string `json:"tokenEndpoint"`
	// MetadataEndpoint describes the cloud to clients that know ARM only.
	MetadataEndpoint string `json:"metadataEndpoint"`
	// IdentityEndpoint and IdentityHeader are the environment of a managed identity.
	IdentityEndpoint string `json:"identityEndpoint"`
	IdentityHeader   string `json:"identityHeader"`
	ClientID         string `json:"clientId"`
	ClientSecret     string `json:"clientSecret"`
	// Proxy is the URL of the proxy for clients with fixed endpoints, "" without a proxy.
	Proxy string `json:"proxy"`
	// DNS is the IP:PORT of the name server of public zones, "" without one.
	DNS string `json:"dns,omitempty"`
	// SMB and NFS are the IP:PORT at which file shares are served, "" if they are not.
	SMB string `json:"smb,omitempty"`
	NFS string `json:"nfs,omitempty"`
	// DevelopmentStorage is the connection string of the storage for clients of emulators, "" without one.
	DevelopmentStorage string `json:"developmentStorage,omitempty"`
	// Boots says that the local Azure boots machines that have custom data. Those of others are documents.
	Boots bool `json:"boots"`
}

// HostOf returns the host:port of a URL, "" for an invalid URL.
func HostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// announcement is the file by which other commands of this user find a running local Azure.
type announcement struct {
	Info
	PID int `json:"pid"`
}

// AnnounceDir returns the directory in which local Azures of this user announce themselves by default.
func AnnounceDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("directory of running local Azures: %w", err)
	}
	return filepath.Join(dir, "kaz", "azure"), nil
}

// FileInDir returns the announcement file of this process in a directory.
func FileInDir(dir string) string { return filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid())) }

// FileBeside returns the announcement file beside a state file.
func FileBeside(state string) string {
	return strings.TrimSuffix(state, filepath.Ext(state)) + "-running.json"
}

// Announce writes an announcement for this process. The caller removes the file when the local Azure ends.
func Announce(file string, info Info) error {
	if err := atomicfile.WriteJSON(file, announcement{info, os.Getpid()}); err != nil {
		return fmt.Errorf("announce the local Azure: %w", err)
	}
	return nil
}

// ErrNotRunning is returned when no local Azure is found.
var ErrNotRunning = errors.New("no local Azure is running; start one with: kaz local azure, or kaz local up")

// DirVariable is the environment variable with the directory of a cluster of kaz local up. The cluster's env.sh sets it.
const DirVariable = "KAZ_LOCAL_DIR"

// Find returns the running local Azure that serves at endpoint. With an empty endpoint it returns the only local Azure
// that is announced in dirs, or of several the one in the directory of [DirVariable]. Otherwise it fails.
func Find(ctx context.Context, endpoint string, dirs ...string) (Info, error) {
	return FindWith(ctx, nil, endpoint, dirs...)
}

// FindWith is [Find], but of several local Azures it prefers one for which has returns true. A nil has is false for all.
func FindWith(ctx context.Context, has func(context.Context, Info) (bool, error), endpoint string, dirs ...string) (Info, error) {
	found, err := running(ctx, endpoint, dirs...)
	if err != nil {
		return Info{}, err
	}
	if len(found) > 1 && has != nil {
		if found, err = preferred(ctx, found, has); err != nil {
			return Info{}, err
		}
	}
	if dir := os.Getenv(DirVariable); len(found) > 1 && dir != "" {
		own, err := running(ctx, "", dir)
		if err != nil {
			return Info{}, err
		}
		if i := slices.IndexFunc(found, func(info Info) bool { return len(own) == 1 && info.ARM == own[0].ARM }); i >= 0 {
			return found[i], nil
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if err := ctx.Err(); err != nil { // the announced local Azures could not be asked
			return Info{}, err
		}
		if endpoint != "" {
			return Info{}, fmt.Errorf("no local Azure of this user serves at %s", endpoint)
		}
		return Info{}, ErrNotRunning
	}
	var names []string
	for _, info := range found {
		names = append(names, "--endpoint "+info.ARM)
	}
	return Info{}, fmt.Errorf("%d local Azures are running; choose one with %s", len(found), strings.Join(names, " or "))
}

// preferred returns the local Azures for which has returns true, or all if it does for none.
func preferred(ctx context.Context, all []Info, has func(context.Context, Info) (bool, error)) ([]Info, error) {
	var found []Info
	for _, info := range all {
		ok, err := has(ctx, info)
		if err != nil {
			return nil, fmt.Errorf("the local Azure at %s: %w", info.ARM, err)
		}
		if ok {
			found = append(found, info)
		}
	}
	if len(found) == 0 {
		return all, nil
	}
	return found, nil
}

// running returns the local Azures that are announced in dirs and serve at endpoint, all with an empty endpoint.
func running(ctx context.Context, endpoint string, dirs ...string) ([]Info, error) {
	var found []Info
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			info, ok := readAnnouncement(ctx, file)
			known := slices.ContainsFunc(found, func(other Info) bool { return other.ARM == info.ARM })
			if ok && !known && info.servesAt(endpoint) {
				found = append(found, info)
			}
		}
	}
	return found, nil
}

func (i Info) servesAt(endpoint string) bool {
	endpoint = strings.TrimSuffix(endpoint, "/")
	return endpoint == "" || endpoint == i.ARM || endpoint == i.ARMHTTP
}

// OfProcess returns the local Azure that a process has announced in a file, if it answers.
func OfProcess(ctx context.Context, file string, pid int) (Info, bool) {
	a, ok := parseAnnouncement(file)
	if !ok || a.PID != pid {
		return Info{}, false
	}
	return readAnnouncement(ctx, file)
}

// parseAnnouncement reads an announcement.
func parseAnnouncement(file string) (a announcement, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return a, false
	}
	err = json.Unmarshal(text, &a)
	return a, err == nil && a.ARM != "" && a.Token != ""
}

// readAnnouncement reads the announcement of a local Azure that answers. A killed local Azure leaves its file behind.
func readAnnouncement(ctx context.Context, file string) (Info, bool) {
	a, ok := parseAnnouncement(file)
	if !ok {
		return Info{}, false
	}
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", HostOf(a.ARM))
	if err != nil {
		return Info{}, false
	}
	_ = c.Close() // only the connection itself mattered
	return a.Info, true
}
