package share

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kaz/internal/host/process"
)

// ganesha is an nfs-ganesha server. It reads its exports again after a signal.
type ganesha struct {
	dir     string
	head    string // the part of the configuration before the exports
	process *process.Process

	exports string // as ganesha has them
	ids     map[string]int
}

// squashes are ganesha's words for [Squash].
var squashes = map[Squash]string{NoRootSquash: "No_Root_Squash", RootSquash: "Root_Squash", AllSquash: "All_Squash"}

func startGanesha(ctx context.Context, c Config) (*ganesha, error) {
	g := &ganesha{dir: filepath.Join(c.Dir, "nfs"), ids: map[string]int{}}
	if err := os.MkdirAll(filepath.Join(g.dir, "recovery"), 0o700); err != nil {
		return nil, err
	}
	if err := g.loadIDs(); err != nil {
		return nil, err
	}
	var err error
	if g.head, err = g.config(c); err != nil {
		return nil, err
	}
	if err := write(g.file("ganesha.conf"), g.head, 0o600); err != nil {
		return nil, err
	}
	path, err := programFile("ganesha.nfsd")
	if err != nil {
		return nil, err
	}
	g.process, err = c.Processes.Start(process.Spec{
		Name: "ganesha", Path: path, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + g.dir},
		Args: []string{"-F", "-f", g.file("ganesha.conf"), "-L", g.file("log"), "-N", "NIV_EVENT", "-p", g.file("pid")},
	})
	if err != nil {
		return nil, err
	}
	return g, await(ctx, g.process, c.NFS)
}

func (g *ganesha) file(name string) string { return filepath.Join(g.dir, name) }

func (g *ganesha) config(c Config) (string, error) {
	host, port, err := net.SplitHostPort(c.NFS)
	if err != nil {
		return "", err
	}
	versions := "1"
	if c.NFS40 {
		versions = "0, 1"
	}
	return fmt.Sprintf(`NFS_CORE_PARAM {
	Protocols = 4; NFS_Port = %s; Bind_addr = %s;
	Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true;
}
NFSV4 {
	Minor_Versions = %s; RecoveryBackend = fs; RecoveryRoot = "%s"; Graceless = true;
	Allow_Numeric_Owners = true; Only_Numeric_Owners = true;
}
`, port, host, versions, g.file("recovery")), nil
}

func (g *ganesha) set(ctx context.Context, accounts []Account) error {
	var text strings.Builder
	for _, a := range slices.SortedFunc(slices.Values(accounts), func(a, b Account) int { return strings.Compare(a.Name, b.Name) }) {
		for _, s := range a.Shares {
			if s.Protocol != NFS {
				continue
			}
			id, err := g.id(a.Name + "/" + s.Name)
			if err != nil {
				return err
			}
			squash := squashes[NoRootSquash]
			if s.Squash != "" {
				squash = squashes[s.Squash]
			}
			fmt.Fprintf(&text, `EXPORT {
	Export_Id = %d; Filesystem_id = 1.%[1]d; Path = "%s"; Pseudo = "/%s/%s"; Squash = %s;
	Access_Type = RW; Protocols = 4; Transports = TCP; SecType = sys; Attr_Expiration_Time = 0; FSAL { Name = VFS; }
}
`, id, s.Path, a.Name, s.Name, squash)
		}
	}
	if text.String() == g.exports {
		return nil
	}
	if err := write(g.file("ganesha.conf"), g.head+text.String(), 0o600); err != nil {
		return err
	}
	if err := g.reload(ctx); err != nil {
		return err
	}
	g.exports = text.String()
	return nil
}

// reloadTime bounds the time in which ganesha reads its exports.
const reloadTime = 10 * time.Second

// reload makes ganesha read its exports, and returns when its log says that it has.
func (g *ganesha) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	before, err := g.reloads()
	if err != nil {
		return err
	}
	g.process.Reload()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		now, err := g.reloads()
		if err != nil || now > before {
			return err
		}
		select {
		case <-g.process.Done():
			return fmt.Errorf("ganesha: %w", g.process.Err())
		case <-ctx.Done():
			return fmt.Errorf("ganesha has not read its exports after %v; its log is %s", reloadTime, g.file("log"))
		case <-tick.C:
		}
	}
}

// reloads returns how often the log says that the exports were read.
func (g *ganesha) reloads() (int, error) {
	log, err := os.ReadFile(g.file("log"))
	if err != nil {
		return 0, err
	}
	return bytes.Count(log, []byte("Reread exports complete")), nil
}

// id returns the number of an export, which clients have in their file handles. It stays the same over a restart.
func (g *ganesha) id(export string) (int, error) {
	if id := g.ids[export]; id != 0 {
		return id, nil
	}
	const most = 65535
	next := 1
	for _, id := range g.ids {
		next = max(next, id+1)
	}
	if next > most {
		return 0, fmt.Errorf("there are %d numbers of exports; remove %s when the servers are stopped", most, g.file("exports.json"))
	}
	g.ids[export] = next
	text, err := json.Marshal(g.ids)
	if err != nil {
		return 0, err
	}
	return next, write(g.file("exports.json"), string(text), 0o600)
}

func (g *ganesha) loadIDs() error {
	text, err := os.ReadFile(g.file("exports.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &g.ids); err != nil {
		return fmt.Errorf("%s: %w", g.file("exports.json"), err)
	}
	return nil
}
