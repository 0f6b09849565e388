package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
)

// mostReading is how long the run command on a machine may take.
const mostReading = 3 * time.Minute

// diskMark begins a line about a disk: its path, and its size and what is free in KiB.
const diskMark = "KAZ-DISK "

// diskScript writes a line about each disk of a member. It changes nothing. A path at which nothing is mounted has the size 0.
const diskScript = `for path in ` + health.EtcdDisk + ` /; do
if mountpoint -q "$path"; then df -P -k "$path" | awk -v path="$path" 'NR == 2 { print "` + diskMark + `" path, $2, $4 }'
else echo "` + diskMark + `$path 0 0"; fi
done`

// disks adds the disks of the members with running machines. No part of the cluster tells how full the disk of etcd is, so each machine
// is asked with a run command, all at once.
func (d Doctor) disks(ctx context.Context, c *found) {
	ctx, cancel := context.WithTimeout(ctx, mostReading)
	defer cancel()
	var group sync.WaitGroup
	for _, m := range c.members {
		if m.Power != "running" && m.Power != "unknown" {
			continue
		}
		group.Go(func() {
			disks, err := d.disksOf(ctx, c.names, m.Name)
			if m.Disks = disks; err != nil {
				m.DiskFault = err.Error()
			}
		})
	}
	group.Wait()
}

// disksOf asks a machine for its disks.
func (d Doctor) disksOf(ctx context.Context, n naming.Names, name string) ([]health.Disk, error) {
	if d.Azure == nil {
		return nil, errors.New("no Azure is known")
	}
	id := n.Group().Resource(record.MachineType, name)
	body, err := json.Marshal(map[string]any{"commandId": "RunShellScript", "script": strings.Split(diskScript, "\n")})
	if err != nil {
		return nil, err
	}
	answer, err := azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Post, ID: id, Action: "runCommand", Body: body})
	if err != nil {
		return nil, err
	}
	return readDisks(answer)
}

// roomFor refuses a defragmentation if a disk has no room for it. A defragmentation writes the used part of the database
// again, beside the database.
func (d Doctor) roomFor(ctx context.Context, n naming.Names, members []inspect.EtcdMember) error {
	ctx, cancel := context.WithTimeout(ctx, mostReading)
	defer cancel()
	for _, m := range members {
		disks, err := d.disksOf(ctx, n, m.Name)
		if err != nil {
			d.Sayf("the disk of %s is not known: %v", m.Name, err)
		}
		for _, disk := range disks {
			if disk.Path == health.EtcdDisk && disk.Free < m.InUse {
				return fmt.Errorf("the disk of etcd of member %s has no room for a defragmentation, which writes the database anew: %s, "+
					"want %d MiB: delete files below %s that are not in its folder etcd, or replace the member: kaz cluster repair "+
					"%s %s", m.Name, disk.Room(), m.InUse>>20, disk.Path, n.Cluster, strings.TrimPrefix(m.Name, n.Cluster+"-"))
			}
		}
	}
	return nil
}

var errNoDisks = errors.New("its run command told of no disk")

// readDisks reads the disks in the answer to a run command.
func readDisks(answer azure.Document) ([]health.Disk, error) {
	var output struct {
		Value []struct {
			Message string `json:"message"`
		} `json:"value"`
	}
	if err := json.Unmarshal(answer, &output); err != nil {
		return nil, fmt.Errorf("output of the run command: %w", err)
	}
	var all []health.Disk
	for _, v := range output.Value {
		for line := range strings.Lines(v.Message) {
			text, is := strings.CutPrefix(strings.TrimSpace(line), strings.TrimSpace(diskMark)+" ")
			if !is {
				continue
			}
			disk, err := readDisk(text)
			if err != nil {
				return nil, fmt.Errorf("output of the run command: %q: %w", line, err)
			}
			all = append(all, disk)
		}
	}
	if len(all) == 0 {
		return nil, errNoDisks
	}
	return all, nil
}

// mostKiB is a size that no disk has.
const mostKiB = 1 << 50

func readDisk(text string) (health.Disk, error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return health.Disk{}, errors.New("want a path and two numbers")
	}
	numbers := [2]int64{}
	for i, word := range words[1:] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || n > mostKiB {
			return health.Disk{}, fmt.Errorf("%q is no number of KiB", word)
		}
		numbers[i] = n
	}
	const kibi = 1 << 10
	return health.Disk{Path: words[0], Size: numbers[0] * kibi, Free: numbers[1] * kibi}, nil
}
