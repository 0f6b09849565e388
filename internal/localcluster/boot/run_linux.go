package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kaz/internal/localcluster/machine"
)

// Run runs a machine until it ends or ctx is done. The command line guest runs [Enter] with the same spec. Run adds the
// path of the console as its last argument.
func Run(ctx context.Context, s Spec, guest ...string) error {
	if err := fillStore(s); err != nil {
		return err
	}
	c, err := openConsole()
	if err != nil {
		return fmt.Errorf("console of %s: %w", s.Name, err)
	}
	defer c.close()
	log, err := os.OpenFile(filepath.Join(s.Dir, ConsoleLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	go func() { _, _ = io.Copy(log, c.outside) }() // ends with the console
	return machine.RunAt(ctx, s.Place, append(guest, c.path)...)
}

// console is the terminal of a machine. Both ends stay open, so that reading does not end while no process of the machine has
// opened it.
type console struct {
	outside, inside *os.File
	path            string // of the end inside
}

func (c console) close() {
	_ = c.outside.Close() // nothing is buffered
	_ = c.inside.Close()
}

func openConsole() (c console, err error) {
	if c.outside, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return c, err
	}
	raw, err := c.outside.SyscallConn()
	if err != nil {
		return c, errors.Join(err, c.outside.Close())
	}
	var number int
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err = errors.Join(err, failed); err == nil {
		c.path = fmt.Sprintf("/dev/pts/%d", number)
		c.inside, err = os.OpenFile(c.path, os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		err = errors.Join(err, c.outside.Close())
	}
	return c, err
}
