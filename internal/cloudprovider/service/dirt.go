package service

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// item is one Service that ever was: a successor of the same name is another one.
type item struct {
	Namespace, Name string
	UID             types.UID
}

// everything is the item that stands for all Services.
var everything = item{}

// why is the reasons for which a Service is looked at.
type why struct {
	nodes bool // the cluster's nodes changed
	drift bool // it is time to compare with what is in Azure
	told  bool // its owner was told that its machines could not come or leave
	start bool // it is the first look of this process at a Service that has its address
	// since is when that was. What is known of Azure from before does not count;
	// where it is zero, what is known will do.
	since time.Time
}

func (w why) and(other why) why {
	w.nodes = w.nodes || other.nodes
	w.drift = w.drift || other.drift
	w.told = w.told || other.told
	if other.since.After(w.since) {
		w.since = other.since
	}
	return w
}

// dirt keeps the reasons beside the queue, which holds items only.
type dirt struct {
	mu  sync.Mutex
	why map[item]why
}

func (d *dirt) add(it item, w why) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == nil {
		d.why = map[item]why{}
	}
	d.why[it] = d.why[it].and(w)
}

func (d *dirt) take(it item) why {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.why[it]
	delete(d.why, it)
	return w
}
