package service_test

import (
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	kubetesting "k8s.io/client-go/testing"
)

// cluster is a fake API server that keeps what it is given as it is. The one of
// fake.NewClientset keeps the owners of fields too, which nobody here asks for and which
// takes a third of the time of these tests.
type cluster struct {
	*fake.Clientset
	tracker kubetesting.ObjectTracker
}

func newCluster() *cluster {
	c := &cluster{&fake.Clientset{}, kubetesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
	c.AddReactor("*", "*", kubetesting.ObjectReaction(c.tracker))
	c.AddWatchReactor("*", func(a kubetesting.Action) (bool, watch.Interface, error) {
		w, err := c.tracker.Watch(a.GetResource(), a.GetNamespace())
		return true, w, err
	})
	return c
}

// Tracker is what the cluster holds, for those who change it past the API.
func (c *cluster) Tracker() kubetesting.ObjectTracker { return c.tracker }
