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

// How often the file is looked at, and how soon what could not be opened, though it can
// be read, is tried again.
const (
	fileLook    = time.Second
	reloadAgain = time.Minute
)

// reloader follows the cloud configuration.
type reloader struct {
	source  source
	client  kubernetes.Interface
	open    func(context.Context, cloudconfig.Config) (*generation, error)
	notices *notices
	results *prometheus.CounterVec
}

func newReloadResults() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kaz_cloud_config_reloads_total", Help: "Changes of the cloud configuration: applied, or rejected, the one before staying in force.",
	}, []string{"result"})
}

// next waits for a configuration other than the one in force and opens its cloud. It is
// nil when ctx ends. What cannot be read or opened is told of, and nothing else happens.
func (r *reloader) next(ctx context.Context, current *generation) *generation {
	watching, stop := context.WithCancel(ctx)
	changes, watched := r.watch(watching)
	defer func() {
		stop()
		watched()
	}()
	told := ""
	reject := func(err error) {
		if err.Error() != told && ctx.Err() == nil {
			told = err.Error()
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
			told = ""
			continue
		}
		g, err := r.open(ctx, settings)
		if err != nil {
			reject(err)
			again = time.After(reloadAgain) // Azure may have been the reason
			continue
		}
		r.results.WithLabelValues("applied").Inc()
		r.notices.applied(r.describe(g))
		return g
	}
}

func (r *reloader) describe(g *generation) string {
	if g.cloud == nil {
		return fmt.Sprintf("%s: disableCloudProvider is true, so all controllers stop", r.source)
	}
	return fmt.Sprintf("%s has changed: all controllers begin anew with it", r.source)
}

// watch tells when the configuration may have changed, and at once: it may have done so
// before anybody looked. What it started has ended when the function returns.
func (r *reloader) watch(ctx context.Context) (changes <-chan struct{}, wait func()) {
	signal := make(chan struct{}, 1)
	changed := func() {
		select {
		case signal <- struct{}{}:
		default: // one who looks sees everything
		}
	}
	done := make(chan struct{})
	if r.source.path == "" {
		close(done)
	} else {
		known := digest(r.source.path) // before anybody reads it: what changes from now on is seen
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

// watchFile calls changed when a file holds something else than is known, and has held it
// for one look: who reads while somebody writes gets half of it. Looking at the contents
// sees every way to change a file, such as mounts that swap a link.
func watchFile(ctx context.Context, path string, known [sha256.Size]byte, changed func()) {
	ticker := time.NewTicker(fileLook)
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

// digest is that of a file's contents. A file that cannot be read has one, too.
func digest(path string) [sha256.Size]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}

// watchSecret calls changed when the Secret is another one.
func (r *reloader) watchSecret(ctx context.Context, changed func()) informers.SharedInformerFactory {
	s := r.source
	factory := informers.NewSharedInformerFactoryWithOptions(r.client, 0, informers.WithNamespace(s.secretNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.secret()).String()
		}))
	// The file may come to name the Secret, or not any more, at any time. But to watch
	// one that nobody has named takes a right that nobody has given.
	if used, err := s.fromSecret(); err != nil || !used {
		return factory
	}
	// It fails only when the informer has stopped, and it has not started.
	_, _ = factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	factory.Start(ctx.Done())
	return factory
}
