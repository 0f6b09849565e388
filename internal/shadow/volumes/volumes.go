// Package volumes decides what the CSI drivers of kaz would write for the volumes of a cluster. It asks their controllers what sidecars
// would ask, with an Azure that notes writes and refuses them. Layer L3.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"kaz/internal/azure"
	"kaz/internal/plan/claim"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Config says what is read.
type Config struct {
	Kubernetes kubernetes.Interface
	// Azure reads past all caches.
	Azure azure.Reader
	Log   *slog.Logger
}

// driver is one of the drivers.
type driver struct {
	Config
	name, inTree string // the provisioners of today and from before CSI
	// what is made for a claim.
	what string
	// check returns why the driver refuses the parameters of a StorageClass.
	check func(map[string]string) error
	// open returns a controller that writes with a writer.
	open func(from azure.Reader, to azure.Writer) (controller, func())
	// attaches says that volumes are attached.
	attaches bool
	// before returns the lists that answer most reads of resources.
	before func([]*corev1.PersistentVolume) []azure.Query
	// unnamed reports whether a volume leaves it to a Secret which share it is.
	unnamed func(*corev1.PersistentVolume) bool
}

// controller is the part of a driver that sidecars ask.
type controller interface {
	csispec.ControllerServer
}

// objects are the objects of Kubernetes in one round.
type objects struct {
	volumes     []*corev1.PersistentVolume
	claims      map[string]*corev1.PersistentVolumeClaim // by NAMESPACE/NAME
	classes     []storagev1.StorageClass
	attachments map[string][]storagev1.VolumeAttachment // by the volume
}

// decide decides about all volumes, claims without one, and StorageClasses of the driver.
func (d driver) decide(ctx context.Context) ([]plan.Verdict, error) {
	o, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	from := &memo{Reader: d.Azure, known: map[string]azure.Document{}}
	for _, q := range d.before(o.volumes) {
		if err := from.list(ctx, q); err != nil {
			return nil, err
		}
	}
	var mu sync.Mutex // guards all
	all := slices.Concat(d.classVerdicts(o), d.pending(o))
	const together = 16
	var asks errgroup.Group
	asks.SetLimit(together)
	for _, v := range o.volumes {
		asks.Go(func() error {
			verdict, err := d.volume(ctx, from, v, o)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, verdict)
			return err
		})
	}
	if err := asks.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b plan.Verdict) int { return strings.Compare(a.Object, b.Object) })
	return all, ctx.Err()
}

// read reads what Kubernetes has.
func (d driver) read(ctx context.Context) (o objects, err error) {
	core, storage := d.Kubernetes.CoreV1(), d.Kubernetes.StorageV1()
	var attachments []storagev1.VolumeAttachment
	if d.attaches { // first: the attachment of a volume that comes meanwhile is not missed
		if attachments, err = shadow.List(ctx, "VolumeAttachments", "",
			func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment { return l.Items },
			storage.VolumeAttachments().List); err != nil {
			return o, err
		}
	}
	volumes, err := shadow.List(ctx, "PersistentVolumes", "",
		func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items }, core.PersistentVolumes().List)
	if err != nil {
		return o, err
	}
	claims, err := shadow.List(ctx, "PersistentVolumeClaims", "",
		func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }, core.PersistentVolumeClaims("").List)
	if err != nil {
		return o, err
	}
	if o.classes, err = shadow.List(ctx, "StorageClasses", "",
		func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items }, storage.StorageClasses().List); err != nil {
		return o, err
	}
	o.claims, o.attachments = map[string]*corev1.PersistentVolumeClaim{}, map[string][]storagev1.VolumeAttachment{}
	for i := range claims {
		o.claims[claims[i].Namespace+"/"+claims[i].Name] = &claims[i]
	}
	for _, a := range attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && a.Spec.Attacher == d.name {
			o.attachments[*name] = append(o.attachments[*name], a)
		}
	}
	for i := range volumes {
		v, err := d.translated(&volumes[i])
		if err != nil {
			return o, err
		}
		if v.Spec.CSI != nil && v.Spec.CSI.Driver == d.name {
			o.volumes = append(o.volumes, v)
		}
	}
	return o, nil
}

// translated returns a volume from before CSI as Kubernetes shows it to the driver.
func (driver) translated(v *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if v.Spec.AzureDisk == nil && v.Spec.AzureFile == nil {
		return v, nil
	}
	t, err := translation.New().TranslateInTreePVToCSI(klog.Background(), v)
	if err != nil {
		return nil, fmt.Errorf("PersistentVolume %s: %w", v.Name, err)
	}
	return t, nil
}

// classVerdicts says which StorageClasses the driver refuses.
func (d driver) classVerdicts(o objects) (all []plan.Verdict) {
	for _, c := range o.classes {
		if c.Provisioner != d.name && c.Provisioner != d.inTree {
			continue
		}
		v := plan.Verdict{Object: "StorageClass " + c.Name}
		if err := d.check(c.Parameters); err != nil {
			v.Refused = err.Error()
		}
		all = append(all, v)
	}
	return all
}

// pending says for which claims the driver would make a volume now.
func (d driver) pending(o objects) (all []plan.Verdict) {
	for key, c := range o.claims {
		i := slices.IndexFunc(o.classes, func(s storagev1.StorageClass) bool { return s.Name == claim.ClassName(c) })
		if c.Spec.VolumeName != "" || c.DeletionTimestamp != nil || i < 0 {
			continue
		}
		class := &o.classes[i]
		if (class.Provisioner == d.name || class.Provisioner == d.inTree) && claim.IsDue(c, class) && d.check(class.Parameters) == nil {
			all = append(all, plan.Verdict{Object: key, Writes: []string{fmt.Sprintf("create %s of class %s", d.what, class.Name)}})
		}
	}
	return all
}

// volume decides about one volume: it asks the driver what sidecars ask it. An error says that Azure could not be read.
func (d driver) volume(ctx context.Context, from azure.Reader, v *corev1.PersistentVolume, o objects) (plan.Verdict, error) {
	verdict := plan.Verdict{Object: v.Name}
	var c *corev1.PersistentVolumeClaim
	if of := v.Spec.ClaimRef; of != nil {
		verdict.Object = of.Namespace + "/" + of.Name + ", " + v.Name
		c = o.claims[of.Namespace+"/"+of.Name]
	}
	if d.unnamed(v) { // it is mounted with its Secret, and the controller is asked nothing
		return verdict, nil
	}
	for _, ask := range requests(v, c, o.attachments[v.Name]) {
		to := &notes{}
		reads := &watched{Reader: from}
		server, end := d.open(reads, to)
		limited, cancel := context.WithTimeout(ctx, patience)
		err := ask(limited, server)
		cancel()
		end()
		if fault := reads.fault(); fault != nil {
			return verdict, fmt.Errorf("%s: %w", verdict.Object, fault)
		}
		writes := to.all()
		verdict.Writes = append(verdict.Writes, writes...)
		if err != nil && len(writes) == 0 {
			verdict.Refused = message(err)
		}
	}
	return verdict, ctx.Err()
}

// patience is how long a driver may wait for another machine to release a disk, which the machine does not do while nothing is written.
const patience = 5 * time.Second

// errUnconfirmed says that a driver cannot serve a volume as its PersistentVolume describes it.
var errUnconfirmed = errors.New("the driver does not serve the volume")
