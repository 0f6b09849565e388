package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"kaz/internal/imds"
	"kaz/internal/nodemanager"
)

// nodeList is a file of nodes with their metadata services.
type nodeList struct {
	path    string
	text    []byte
	sources map[string]nodemanager.FromMetadata // by URL
}

func openList(path string) (*machines, error) {
	l := &nodeList{path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--node-list: %w", err)
	}
	members, err := l.read(text)
	if err != nil {
		return nil, fmt.Errorf("--node-list %s: %w", path, err)
	}
	m := &machines{members: members, changes: make(chan []nodemanager.Member), close: l.close}
	m.watch = func(ctx context.Context, log *slog.Logger) error { l.watch(ctx, log, m.changes); return nil }
	return m, nil
}

// read parses the members of the list. It reuses the source of a known URL, so that its node is not
// updated again.
func (l *nodeList) read(text []byte) ([]nodemanager.Member, error) {
	var members []nodemanager.Member
	var problems []error
	sources, seen, number := map[string]nodemanager.FromMetadata{}, map[string]int{}, 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			problems = append(problems,
				fmt.Errorf("line %d: %q: want a node's name and the URL of its metadata service", number, strings.TrimSpace(line)))
			continue
		}
		node, url := words[0], words[1]
		source, err := l.source(sources, url)
		if err = errors.Join(checkNodeName(node), err); err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		if before := seen[node]; before > 0 {
			problems = append(problems, fmt.Errorf("line %d: node %s stands in line %d too", number, node, before))
			continue
		}
		seen[node] = number
		members = append(members, nodemanager.Member{Node: node, Source: source})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	l.text, l.sources = text, sources
	return members, nil
}

func (l *nodeList) source(sources map[string]nodemanager.FromMetadata, url string) (nodemanager.Source, error) {
	if s, ok := sources[url]; ok {
		return s, nil
	}
	s, ok := l.sources[url]
	if !ok {
		client, err := metadataClient(url)
		if err != nil {
			return nil, err
		}
		s = nodemanager.FromMetadata{Service: client, Named: true}
	}
	sources[url] = s
	return s, nil
}

// reread is how often the file is read.
const reread = time.Second

// watch sends the members when the file has changed and two reads in a row found the same text. A single read may find a file
// that is only written in part. watch ignores a missing or invalid file.
func (l *nodeList) watch(ctx context.Context, log *slog.Logger, changes chan<- []nodemanager.Member) {
	ticks := time.NewTicker(reread)
	defer ticks.Stop()
	var seen []byte
	var said string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		text, err := os.ReadFile(l.path)
		whole := bytes.Equal(text, seen)
		seen = text
		switch {
		case err == nil && bytes.Equal(text, l.text):
			said = ""
			continue
		case err == nil && !whole:
			continue
		}
		var members []nodemanager.Member
		if err == nil {
			members, err = l.read(text)
		}
		if err != nil {
			if err.Error() != said {
				said = err.Error()
				log.Warn("list of nodes cannot be read, the nodes stay those that they were", "file", l.path, "error", err)
			}
			continue
		}
		log.Info("list of nodes read again", "file", l.path, "nodes", len(members))
		select {
		case <-ctx.Done():
			return
		case changes <- members:
		}
	}
}

func (l *nodeList) close() {
	for _, s := range l.sources {
		if client, ok := s.Service.(*imds.Client); ok {
			client.Close()
		}
	}
}
