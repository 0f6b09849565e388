package cache

import (
	"container/list"
	"time"

	"kaz/internal/azure"
)

// kept are the remembered answers, those used last in front.
type kept struct {
	entries map[string]*entry
	recent  *list.List
	bytes   int
	most    int
}

type entry struct {
	read    read
	docs    []azure.Document
	began   uint64
	expires time.Time
	size    int
	at      *list.Element
}

func newKept(most int) kept {
	const usual = 32 << 20
	if most <= 0 {
		most = usual
	}
	return kept{entries: map[string]*entry{}, recent: list.New(), most: most}
}

func (k *kept) use(key string, now time.Time) ([]azure.Document, bool) {
	e, ok := k.entries[key]
	if !ok {
		return nil, false
	}
	if !now.Before(e.expires) {
		k.drop(e)
		return nil, false
	}
	k.recent.MoveToFront(e.at)
	return e.docs, true
}

func (k *kept) put(r read, docs []azure.Document, began uint64, expires time.Time) {
	if old, ok := k.entries[r.key]; ok {
		if old.began > began {
			return
		}
		k.drop(old)
	}
	const overhead = 256 // of an entry, about
	size := overhead + 2*len(r.key)
	for _, d := range docs {
		size += len(d) + 24
	}
	if size > k.most {
		return
	}
	r.fetch = nil // it would hold on to more than the answer
	e := &entry{read: r, docs: docs, began: began, expires: expires, size: size}
	e.at = k.recent.PushFront(e)
	k.entries[r.key] = e
	k.bytes += size
	for k.bytes > k.most {
		k.drop(k.recent.Back().Value.(*entry))
	}
}

func (k *kept) drop(e *entry) {
	delete(k.entries, e.read.key)
	k.recent.Remove(e.at)
	k.bytes -= e.size
}
