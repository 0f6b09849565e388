package block

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Subscribe() func(ctx context.Context, f func([]core.Change))
}

// Options are the options of Start.
type Options struct {
	Azure Azure
	// Dir is the directory of the files of disks and snapshots.
	Dir string
	// Root returns the directory below which dev/disk of a machine is found, and false for a machine that does not run
	// here. It is called while the documents are locked.
	Root func(machine azure.ID, doc behaviour.Object) (string, bool)
	Log  *slog.Logger // nil is slog.Default
}

// Block is the physical side of disks until it is closed.
type Block struct {
	options Options
	stop    context.CancelFunc
	done    sync.WaitGroup

	// The following fields belong to the goroutine that applies changes.
	attached map[place]string   // the file at a place
	devices  map[string]*device // by file
}

// place is where a machine has a disk.
type place struct {
	root string
	lun  int
}

const (
	diskType     = "Microsoft.Compute/disks"
	snapshotType = "Microsoft.Compute/snapshots"
	vmType       = "Microsoft.Compute/virtualMachines"
	instanceType = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
)

// Start creates the files and devices of all disks, and follows the changes of their documents.
func Start(ctx context.Context, o Options) (*Block, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("directory of disks: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &Block{options: o, stop: stop, attached: map[place]string{}, devices: map[string]*device{}}
	changes := o.Azure.Subscribe() // before the first look
	b.createAll()
	b.attach()
	b.done.Go(func() { changes(ctx, b.apply) })
	return b, nil
}

// Close detaches all devices. The files stay.
func (b *Block) Close() {
	b.stop()
	b.done.Wait()
	for at := range b.attached {
		b.detach(at)
	}
}

// createAll creates the files that are missing.
func (b *Block) createAll() {
	b.options.Azure.Look(func(w behaviour.World) {
		for _, kind := range []string{snapshotType, diskType} {
			for _, doc := range behaviour.Everywhere(w, kind) {
				b.try("create the file of a disk", b.create(doc))
			}
		}
	})
}

func (b *Block) try(what string, err error) {
	if err != nil {
		b.options.Log.Error("disk of the local azure", "action", what, "error", err)
	}
}

// apply applies changes of documents in their order.
func (b *Block) apply(changes []core.Change) {
	var deleted []behaviour.Object
	relevant := false
	for _, c := range changes {
		relevant = relevant || c.ID.Is(diskType) || c.ID.Is(vmType) || c.ID.Is(instanceType)
		switch {
		case !c.ID.Is(diskType) && !c.ID.Is(snapshotType):
		case c.New == nil:
			deleted = append(deleted, c.Old)
		default:
			b.try("create the file of a disk", b.create(c.New))
		}
	}
	if relevant {
		b.attach()
	}
	for _, doc := range deleted {
		b.try("delete the file of a disk", os.Remove(b.file(doc)))
	}
}

// file returns the file of a disk or snapshot. Azure never gives a unique id twice.
func (b *Block) file(doc behaviour.Object) string {
	return filepath.Join(b.options.Dir, behaviour.Text(doc, "properties.uniqueId")+".img")
}

// create creates the file of a disk or snapshot, as a copy of its source if it has one, or grows it.
func (b *Block) create(doc behaviour.Object) error {
	const gib = 1 << 30
	path := b.file(doc)
	size, _ := behaviour.Int(doc, "properties.diskSizeGB")
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Size() < int64(size)*gib:
		return b.grow(path, int64(size)*gib)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	partial := path + ".partial"
	if source := behaviour.Text(doc, "properties.creationData.sourceUniqueId"); source != "" {
		err = copySparse(partial, filepath.Join(b.options.Dir, source+".img"))
	} else {
		err = os.WriteFile(partial, nil, 0o600)
	}
	if err == nil {
		err = os.Truncate(partial, int64(size)*gib)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	return err
}

// grow grows a file and the device that has it.
func (b *Block) grow(path string, size int64) error {
	if err := os.Truncate(path, size); err != nil {
		return err
	}
	if d := b.devices[path]; d != nil {
		return d.resize()
	}
	return nil
}

// attach makes the devices and links of all machines equal to the documents.
func (b *Block) attach() {
	want := map[place]string{}
	b.options.Azure.Look(func(w behaviour.World) { b.wanted(w, want) })
	for at, file := range b.attached {
		if want[at] != file {
			b.detach(at)
		}
	}
	for at, file := range want {
		if _, ok := b.attached[at]; !ok {
			b.try("attach a disk", b.attachOne(at, file))
		}
	}
}

// wanted adds the file of each attached disk by its place.
func (b *Block) wanted(w behaviour.World, want map[place]string) {
	for _, kind := range []string{vmType, instanceType} {
		for id, doc := range behaviour.Everywhere(w, kind) {
			b.wantedOf(w, id, doc, want)
		}
	}
}

func (b *Block) wantedOf(w behaviour.World, machine azure.ID, doc behaviour.Object, want map[place]string) {
	disks := behaviour.Objects(doc, "properties.storageProfile.dataDisks")
	if len(disks) == 0 {
		return
	}
	root, here := b.options.Root(machine, doc)
	if !here {
		return
	}
	for _, entry := range disks {
		lun, ok := behaviour.Int(entry, "lun")
		disk, stored := w.Get(behaviour.RefID(entry, "managedDisk"))
		if ok && stored {
			want[place{root, lun}] = b.file(disk)
		}
	}
}

// attachOne links a place to the device of a file. All machines with a shared disk have one device, because two devices
// of a file would not see each other's writes.
func (b *Block) attachOne(at place, file string) error {
	d := b.devices[file]
	if d == nil {
		var err error
		if d, err = openDevice(file); err != nil {
			return err
		}
		b.devices[file] = d
	}
	if err := replaceLink(d.path, at.link()); err != nil {
		return errors.Join(err, b.release(file))
	}
	b.attached[at] = file
	return nil
}

func replaceLink(target, link string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, link)
}

func (b *Block) detach(at place) {
	err := os.Remove(at.link())
	if errors.Is(err, fs.ErrNotExist) { // the machine's directory is gone
		err = nil
	}
	file := b.attached[at]
	delete(b.attached, at)
	b.try("detach a disk", errors.Join(err, b.release(file)))
}

// release closes the device of a file if no machine has it.
func (b *Block) release(file string) error {
	for _, used := range b.attached {
		if used == file {
			return nil
		}
	}
	d := b.devices[file]
	delete(b.devices, file)
	return d.close()
}

// link returns the path of the link to a disk.
func (p place) link() string {
	return filepath.Join(p.root, "dev/disk/azure/scsi1", "lun"+strconv.Itoa(p.lun))
}

// copySparse copies a file without its holes. It shares the blocks where the file system can.
func copySparse(to, from string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if cloneFile(target, source) == nil {
		return nil
	}
	return copyData(target, source)
}
