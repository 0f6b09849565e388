package service_test

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	kubetesting "k8s.io/client-go/testing"
)

// cluster is a fake API server that stores objects as they are. That of fake.NewClientset also stores the owners of
// fields. No test needs these, and they take a third of the time of these tests.
type cluster struct {
	*fake.Clientset
	tracker kubetesting.ObjectTracker

	mu sync.Mutex
	// begun are the watches, by resource, of informers that have listed and do not watch
	// yet: nothing that changes in between is lost.
	begun map[schema.GroupVersionResource][]watch.Interface
}

func newCluster() *cluster {
	c := &cluster{
		Clientset: &fake.Clientset{}, tracker: kubetesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
		begun: map[schema.GroupVersionResource][]watch.Interface{},
	}
	c.AddReactor("list", "*", c.beginWatch)
	c.AddReactor("*", "*", kubetesting.ObjectReaction(c.tracker))
	c.AddWatchReactor("*", c.watch)
	return c
}

// beginWatch begins the watch that follows the list of an informer.
func (c *cluster) beginWatch(a kubetesting.Action) (handled bool, _ runtime.Object, err error) {
	if list, ok := a.(kubetesting.ListActionImpl); !ok || list.ListOptions.ResourceVersion != "0" {
		return false, nil, nil // lists once
	}
	w, err := c.tracker.Watch(a.GetResource(), a.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[a.GetResource()] = append(c.begun[a.GetResource()], w)
	return false, nil, nil
}

func (c *cluster) watch(a kubetesting.Action) (bool, watch.Interface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if begun := c.begun[a.GetResource()]; len(begun) > 0 {
		c.begun[a.GetResource()] = begun[1:]
		return true, begun[0], nil
	}
	w, err := c.tracker.Watch(a.GetResource(), a.GetNamespace())
	return true, w, err
}

// Tracker is what the cluster holds, for tests that change it past the API.
func (c *cluster) Tracker() kubetesting.ObjectTracker { return c.tracker }
