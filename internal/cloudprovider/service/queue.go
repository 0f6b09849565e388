package service

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/controller"
)

type queue = controller.Queue[item, reasons]

// item is one Service that ever was: a successor of the same name is another one.
type item struct {
	Namespace, Name string
	UID             types.UID
}

func itemOf(s *corev1.Service) item { return item{s.Namespace, s.Name, s.UID} }

// String is the key of the Service.
func (it item) String() string { return strings.TrimPrefix(it.Namespace+"/"+it.Name, "/") }

// everything is the item that stands for all Services.
var everything = item{}

// reasons say why a Service is queued.
type reasons struct {
	nodes   bool // the cluster's nodes changed
	drift   bool // it is time to compare with what is in Azure
	startup bool // it is the first pass of this process for a Service that has its address
	// since is when that was. What was read of Azure before does not count; where it is zero,
	// what is in the cache will do.
	since time.Time
}

// And is both reasons together. A startup is not inherited.
func (r reasons) And(other reasons) reasons {
	r.nodes = r.nodes || other.nodes
	r.drift = r.drift || other.drift
	if other.since.After(r.since) {
		r.since = other.since
	}
	return r
}
