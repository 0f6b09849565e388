package boot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kaz/internal/host/process"
)

// keptUnused is how many directories with one name stay although no process uses them.
const keptUnused = 3

// latest is once for a directory that changes with every build of kaz. It removes the directories with the name that no process
// uses, but for those used last. The directory is in use until the lock is released.
func (c Catalogue) latest(ctx context.Context, name string, from []string, make func(dir string) error) (string, *process.Lock, error) {
	use := c.dir(name, from) + used
	lock, err := process.ShareLock(ctx, use, func() { c.say("waiting for another kaz process, which removes unused images") })
	if err != nil {
		return "", nil, err
	}
	now := time.Now()
	err = os.Chtimes(use, now, now)
	dir := ""
	if err == nil {
		dir, err = c.once(ctx, name, from, make)
	}
	if err == nil {
		err = c.tidy(name)
	}
	if err != nil {
		lock.Release()
		return "", nil, err
	}
	return dir, lock, nil
}

// used is the suffix of the file that processes lock while they use a directory. Its time is when the last use began.
const used = ".used"

// tidy removes directories.
func (c Catalogue) tidy(name string) error {
	dirs, err := filepath.Glob(filepath.Join(c.Dir, name+"-"+"????????????"))
	if err != nil {
		return err
	}
	slices.SortFunc(dirs, func(a, b string) int { return lastUse(b).Compare(lastUse(a)) })
	unused := 0
	for _, dir := range dirs {
		lock, err := process.TryLock(dir + used)
		if err != nil {
			return err
		}
		if lock == nil {
			continue
		}
		unused++
		if unused <= keptUnused {
			lock.Release()
			continue
		}
		if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".lock"), lock.Remove()); err != nil {
			return err
		}
	}
	return nil
}

// lastUse is when the last use of a directory began. It is the zero time for a directory without that file.
func lastUse(dir string) time.Time {
	info, err := os.Stat(dir + used)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
