package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// errGone is returned for a pid without a process, or with a zombie.
var errGone = errors.New("no such process")

// identify returns what distinguishes a process from every earlier and later process with the same pid.
// Source: proc_pid_stat(5), fields 3 (state) and 22 (starttime).
func identify(pid int) (boot string, started uint64, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, errGone
	}
	// The program's name is in parentheses and can contain spaces and parentheses: count fields after the last one.
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) < 20 {
		return "", 0, fmt.Errorf("process %d: cannot read its start time", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", 0, errGone
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("process %d: cannot read its start time: %w", pid, err)
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, fmt.Errorf("process %d: cannot read the boot id: %w", pid, err)
	}
	return strings.TrimSpace(string(id)), started, nil
}
