package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/cloudconfig"
)

// fileInterval is how often the file is read. reloadRetry is the delay before the next attempt to open the
// cloud of a valid configuration.
const (
	fileInterval = time.Second
	reloadRetry  = time.Minute
)

// reloader watches the cloud configuration for changes.
type reloader struct {
	source  source
	client  kubernetes.Interface
	open    func(context.Context, cloudconfig.Config) (*generation, error)
	notices *notices
	results *prometheus.CounterVec
}

func newReloadResults() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kaz_cloud_config_reloads_total",
		Help: "Changes of the cloud configuration: applied, or rejected with the previous configuration kept.",
	}, []string{"result"})
}

// next waits for a changed configuration and opens its cloud. It returns nil when ctx ends. A
// configuration that cannot be read or opened is reported and skipped.
func (r *reloader) next(ctx context.Context, current *generation) *generation {
	watching, stop := context.WithCancel(ctx)
	changes, watched := r.watch(watching)
	defer func() {
		stop()
		watched()
	}()
	reported := ""
	reject := func(err error) {
		if err.Error() != reported && ctx.Err() == nil {
			reported = err.Error()
			r.results.WithLabelValues("rejected").Inc()
			r.notices.rejected(err)
		}
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes:
		case <-again:
		}
		again = nil
		settings, err := r.source.read(ctx, r.client)
		if err != nil {
			reject(err)
			continue
		}
		if reflect.DeepEqual(settings, current.settings) {
			reported = ""
			continue
		}
		g, err := r.open(ctx, settings)
		if err != nil {
			reject(err)
			again = time.After(reloadRetry) // the failure may have been temporary
			continue
		}
		r.results.WithLabelValues("applied").Inc()
		r.notices.applied(r.describe(g))
		return g
	}
}

func (r *reloader) describe(g *generation) string {
	if g.cloud == nil {
		return fmt.Sprintf("%s: disableCloudProvider is true, all controllers stop", r.source)
	}
	return fmt.Sprintf("%s has changed: all controllers restart with it", r.source)
}

// watch signals when the configuration may have changed. It also signals at once, because the
// configuration may have changed before. wait returns when everything that watch started has ended.
func (r *reloader) watch(ctx context.Context) (changes <-chan struct{}, wait func()) {
	signal := make(chan struct{}, 1)
	changed := func() {
		select {
		case signal <- struct{}{}:
		default: // a pending signal covers this change too
		}
	}
	done := make(chan struct{})
	if r.source.path == "" {
		close(done)
	} else {
		known := digest(r.source.path) // read before the first use, so that no later change is missed
		go func() {
			defer close(done)
			watchFile(ctx, r.source.path, known, changed)
		}()
	}
	factory := r.watchSecret(ctx, changed)
	changed()
	return signal, func() {
		<-done
		factory.Shutdown()
	}
}

// watchFile calls changed when the content of a file differs from known and was the same in two
// reads. A file that is being written may otherwise be read in part. Comparing contents detects every
// kind of change, such as mounts that swap a symbolic link.
func watchFile(ctx context.Context, path string, known [sha256.Size]byte, changed func()) {
	ticker := time.NewTicker(fileInterval)
	defer ticker.Stop()
	seen := known
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := digest(path)
		if now == seen && now != known {
			known = now
			changed()
		}
		seen = now
	}
}

// digest returns the hash of a file's content. A read error has a hash too.
func digest(path string) [sha256.Size]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}

// watchSecret calls changed when the Secret changes.
func (r *reloader) watchSecret(ctx context.Context, changed func()) informers.SharedInformerFactory {
	s := r.source
	factory := informers.NewSharedInformerFactoryWithOptions(r.client, 0, informers.WithNamespace(s.secretNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.secret()).String()
		}))
	// The file may start or stop to name the Secret at any time. Watch it only while the file names
	// it: watching needs a right that may not be granted.
	if used, err := s.fromSecret(); err != nil || !used {
		return factory
	}
	// AddEventHandler fails only on a stopped informer.
	_, _ = factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	factory.Start(ctx.Done())
	return factory
}
