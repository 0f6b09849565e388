package files

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"kaz/internal/testkit/guest"
)

// The account of the servers. Any name may log in to Samba, as long as it has the key.
const (
	account = "account0"
	key     = "c2VjcmV0IGtleSBvZiBhbiBhY2NvdW50IHdpdGggNjQgYnl0ZXMsIGFzIEF6dXJlIG1ha2VzIHRoZW0uLi4uLi4uLg=="
)

// smbUser is the user of this machine as which Samba knows all accounts.
const smbUser = "nobody"

var smbConfig = template.Must(template.New("smb.conf").Parse(`[global]
server role = standalone server
interfaces = {{.Address}}
bind interfaces only = yes
smb ports = 445
disable netbios = yes
disable spoolss = yes
load printers = no
printcap name = /dev/null
passdb backend = tdbsam:{{.Dir}}/passdb.tdb
username map = {{.Dir}}/usermap
log file = {{.Dir}}/log.%m
private dir = {{.Dir}}
lock directory = {{.Dir}}
state directory = {{.Dir}}
cache directory = {{.Dir}}
pid directory = {{.Dir}}
ncalrpc dir = {{.Dir}}/ncalrpc
server min protocol = SMB3
[share]
path = {{.Dir}}/share
read only = no
force user = root
create mask = 0777
directory mask = 0777
`))

// serveSMB starts Samba with a share.
func serveSMB(ctx context.Context, h *guest.Host) error {
	dir := filepath.Join(h.Dir, "smb")
	if err := os.MkdirAll(filepath.Join(dir, "share", "folder"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "usermap"), []byte(smbUser+" = *\n"), 0o600); err != nil {
		return err
	}
	config, err := fill(smbConfig, h, dir)
	if err != nil {
		return err
	}
	add := exec.CommandContext(ctx, "smbpasswd", "-c", config, "-s", "-a", smbUser)
	add.Stdin = strings.NewReader(key + "\n" + key + "\n")
	if output, err := add.CombinedOutput(); err != nil {
		return fmt.Errorf("smbpasswd: %w: %s", err, output)
	}
	return h.Serve(ctx, 445, "smbd", "--foreground", "--no-process-group", "--configfile="+config)
}

var nfsConfig = template.Must(template.New("ganesha.conf").Parse(`
NFS_CORE_PARAM {
	Protocols = 4;
	NFS_Port = 2049;
	Bind_addr = {{.Address}};
	Enable_NLM = false;
	Enable_RQUOTA = false;
}
NFSv4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = {{.Dir}}/recovery; Only_Numeric_Owners = true; Minor_Versions = 1; }
EXPORT_DEFAULTS { Access_Type = RW; SecType = sys; Transports = TCP; Protocols = 4; }
EXPORT { Export_Id = 1; Path = {{.Dir}}/share; Pseudo = /account0/share; Squash = No_Root_Squash; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = {{.Dir}}/squashed; Pseudo = /account0/squashed; Squash = Root_Squash; FSAL { Name = VFS; } }
`))

// serveNFS starts an NFS server with two shares, one of which squashes root.
func serveNFS(ctx context.Context, h *guest.Host) error {
	dir := filepath.Join(h.Dir, "nfs")
	for name, mode := range map[string]os.FileMode{"recovery": 0o755, "share/folder": 0o755, "squashed": 0o777} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	config, err := fill(nfsConfig, h, dir)
	if err != nil {
		return err
	}
	return h.Serve(ctx, 2049, "ganesha.nfsd", "-F", "-f", config, "-L", "STDERR", "-N", "WARN", "-p", filepath.Join(dir, "pid"))
}

// fill writes the configuration of a server and returns its path.
func fill(config *template.Template, h *guest.Host, dir string) (string, error) {
	path := filepath.Join(dir, config.Name())
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return path, config.Execute(f, struct{ Address, Dir string }{h.Network.Host.String(), dir})
}
