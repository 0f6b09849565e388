package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// announcement is the file in which a running local Azure tells other commands of
// this user what they need to talk to it.
type announcement struct {
	AzureInfo
	PID int `json:"pid"`
}

// announcementOf is the file of the local Azure with a state file, "" for none.
func announcementOf(state string) string {
	if state == "" {
		return ""
	}
	return strings.TrimSuffix(state, filepath.Ext(state)) + "-running.json"
}

// AnnounceDir is where local Azures of this user announce themselves unless told
// otherwise.
func AnnounceDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("folder of running local Azures: %w", err)
	}
	return filepath.Join(dir, "kaz", "azure"), nil
}

// announce writes the announcement beside the state, and into the folder if one is
// given. They go when the local Azure ends.
func (a *Azure) announce(dir string) error {
	files := []string{announcementOf(a.state)}
	if dir != "" {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid())))
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if err := writeJSON(file, announcement{a.info, os.Getpid()}); err != nil {
			return fmt.Errorf("announce the local Azure: %w", err)
		}
		a.closers = append(a.closers, func() error { return os.Remove(file) })
	}
	return nil
}

// errNoAzure says that no local Azure could be found.
var errNoAzure = errors.New("no local Azure is running; start one with: kaz local azure, or kaz local up")

// FindAzure finds the running local Azure that is meant: the one at the endpoint if
// one is given, else the only one among those that are announced in a folder, or
// that keep their state in it.
func FindAzure(ctx context.Context, endpoint string, dirs ...string) (AzureInfo, error) {
	var found []AzureInfo
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			return AzureInfo{}, err
		}
		for _, file := range files {
			info, ok := readAnnouncement(ctx, file)
			if ok && !containsAzure(found, info) && matchesEndpoint(info, endpoint) {
				found = append(found, info)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if err := ctx.Err(); err != nil { // it was not found out whether one answers
			return AzureInfo{}, err
		}
		if endpoint != "" {
			return AzureInfo{}, fmt.Errorf("no local Azure of this user serves at %s", endpoint)
		}
		return AzureInfo{}, errNoAzure
	}
	var names []string
	for _, info := range found {
		names = append(names, "--endpoint "+info.ARM)
	}
	return AzureInfo{}, fmt.Errorf("%d local Azures are running; say which one is meant: %s", len(found), strings.Join(names, " or "))
}

func matchesEndpoint(info AzureInfo, endpoint string) bool {
	endpoint = strings.TrimSuffix(endpoint, "/")
	return endpoint == "" || endpoint == info.ARM || endpoint == info.ARMHTTP
}

func containsAzure(list []AzureInfo, info AzureInfo) bool {
	for _, other := range list {
		if other.ARM == info.ARM {
			return true
		}
	}
	return false
}

// readAnnouncement reads a file if it is the announcement of a local Azure that
// answers: one that was killed leaves its file behind.
func readAnnouncement(ctx context.Context, file string) (AzureInfo, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return AzureInfo{}, false
	}
	var a announcement
	if err := json.Unmarshal(text, &a); err != nil || a.ARM == "" || a.Token == "" {
		return AzureInfo{}, false
	}
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", hostOf(a.ARM))
	if err != nil {
		return AzureInfo{}, false
	}
	_ = c.Close() // it was only to see whether somebody is there
	return a.AzureInfo, true
}
