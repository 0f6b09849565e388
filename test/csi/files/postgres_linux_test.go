package files

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kaz/internal/testkit/guest"
)

const postgresPrograms = "/usr/lib/postgresql/15/bin"

// database is a PostgreSQL cluster in a directory, with the user that owns it.
type database struct {
	t      *testing.T
	user   *syscall.Credential
	socket string // its directory
	data   string
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	guest.Facts[facts](t)
	if _, err := os.Stat(postgresPrograms); err != nil {
		t.Skipf("the package postgresql-15 is not installed: %v", err)
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Skipf("the package postgresql-15 is not installed: %v", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	d := &database{t: t, user: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, socket: "/sockets" + t.TempDir()}
	if err := os.MkdirAll(d.socket, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.socket, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return d
}

// command returns one of PostgreSQL's programs, to run as its user.
func (d *database) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(postgresPrograms, program), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.user, Setpgid: true}
	cmd.Dir, cmd.Env = d.socket, []string{"TZ=UTC"} // without it initdb reads all time zones
	return cmd
}

func (d *database) init() (string, error) {
	// Small segments of the log: all that matters happens with them, too.
	output, err := d.command(d.t.Context(), "initdb", "--pgdata="+d.data, "--username=postgres", "--auth=trust",
		"--no-locale", "--encoding=UTF8", "--wal-segsize=1").CombinedOutput()
	return string(output), err
}

// start starts the server and returns when it answers. Its log is read after it ended.
func (d *database) start() (server *exec.Cmd, log *strings.Builder) {
	d.t.Helper()
	const patience, pause = 3 * time.Minute, 50 * time.Millisecond
	log = &strings.Builder{}
	server = d.command(context.WithoutCancel(d.t.Context()), "postgres", "-D", d.data, "-k", d.socket, "-c", "listen_addresses=")
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	for d.command(ctx, "pg_isready", "-q", "-h", d.socket).Run() != nil {
		select {
		case <-ctx.Done():
			kill(server)
			d.t.Fatalf("the server does not answer:\n%s", log)
		case <-time.After(pause):
		}
	}
	return server, log
}

// kill ends the server and all its processes at once.
func kill(server *exec.Cmd) {
	_ = unix.Kill(-server.Process.Pid, unix.SIGKILL) // it has ended otherwise
	_ = server.Wait()                                // its error is that it was killed
}

func (d *database) sql(statements string) string {
	d.t.Helper()
	output, err := d.command(d.t.Context(), "psql", "-h", d.socket, "-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statements).CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", statements, err, output)
	}
	return strings.TrimSpace(string(output))
}

// survives creates a database on a share, writes to it, kills it, and looks for what it wrote on a new mount of the share.
func (d *database) survives(mount func(t *testing.T) string) {
	t := d.t
	t.Helper()
	const rows = 10000
	t.Run("write", func(t *testing.T) {
		d.t = t
		d.data = filepath.Join(mount(t), "database")
		began := time.Now()
		if output, err := d.init(); err != nil {
			t.Fatalf("initdb: %v\n%s", err, output)
		}
		t.Logf("initdb took %s", time.Since(began).Round(time.Millisecond))
		server, _ := d.start()
		defer kill(server)
		d.sql(fmt.Sprintf("CREATE TABLE numbers AS SELECT generate_series(1, %d) AS number", rows))
		d.sql("CHECKPOINT")
		d.sql(fmt.Sprintf("INSERT INTO numbers SELECT generate_series(%d, %d)", rows+1, 2*rows))
	})
	t.Run("recover", func(t *testing.T) {
		d.t = t
		d.data = filepath.Join(mount(t), "database")
		server, log := d.start()
		got := d.sql("SELECT count(*), sum(number) FROM numbers")
		if want := fmt.Sprintf("%d|%d", 2*rows, rows*(2*rows+1)); got != want {
			t.Errorf("the table has the rows and the sum %s, want %s", got, want)
		}
		kill(server)
		if !strings.Contains(log.String(), "automatic recovery in progress") {
			t.Errorf("the server did not recover:\n%s", log)
		}
	})
}

func TestPostgreSQLOnSMB(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.survives(func(t *testing.T) string {
		return must(t)(mountSMB(t, "files", "file_mode=0700,dir_mode=0700,mfsymlinks,actimeo=30,nosharesock",
			fmt.Sprintf("uid=%d,gid=%d", d.user.Uid, d.user.Gid)))
	})
}

func TestPostgreSQLOnNFS(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	path := must(t)(mountNFS(t, "exports"))
	directory := filepath.Join(path, "database")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(directory, int(d.user.Uid), int(d.user.Gid)); err != nil {
		t.Fatal(err)
	}
	d.survives(func(t *testing.T) string { return must(t)(mountNFS(t, "exports")) })
}

// PostgreSQL refuses to run on a share with the modes that mounts have by default. This is why volumes can ask for others.
func TestPostgreSQLRefusesOpenModes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.data = filepath.Join(must(t)(mountSMB(t, "files", "file_mode=0777,dir_mode=0777")), "refused")
	const want = "could not change permissions"
	if output, err := d.init(); err == nil || !strings.Contains(output, want) {
		t.Errorf("initdb gives %v, want %q:\n%s", err, want, output)
	}
}
