package fabric_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"kaz/internal/localazure/plane/fabric/netns"
)

// BenchmarkConnections opens connections, 16 at a time, and waits for their end. The connections go through a public
// frontend with floating IP and two backends or, for comparison, stay within one machine.
func BenchmarkConnections(b *testing.B) {
	w, members, front := benchmarkWorld(b, func(net.Conn) {})
	b.Run("loopback", func(b *testing.B) { connections(b, members[0], "127.0.0.1:80") })
	b.Run("balancer", func(b *testing.B) { connections(b, w.outside, front) })
}

func connections(b *testing.B, from *machine, to string) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, 16)
	for range 16 {
		wg.Go(func() {
			err := netns.Do(from.path, func() error {
				var failed error
				for range turns {
					c, err := net.Dial("tcp", to)
					if err != nil {
						failed = err
						continue
					}
					_, _ = io.Copy(io.Discard, c)
					c.Close()
				}
				return failed
			})
			if err != nil {
				b.Error(err)
			}
		})
	}
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "connections/s")
}

// BenchmarkThroughput sends megabytes over one connection through a public frontend with floating IP.
func BenchmarkThroughput(b *testing.B) {
	w, _, front := benchmarkWorld(b, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c, err := w.outside.open("tcp", front, generous)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const size = 1 << 20
	buffer := make([]byte, size)
	b.SetBytes(size)
	for b.Loop() {
		if _, err := c.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*size*8/1e9/b.Elapsed().Seconds(), "Gbit/s")
}

// benchmarkWorld returns two backends behind a frontend, which call the function for each connection.
func benchmarkWorld(b *testing.B, treat func(net.Conn)) (*lab, []*machine, string) {
	w := start(b)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: id, rules: list{rule("web", "Tcp", 80, 80, floats)}})
	members := w.members(2, front)
	for _, m := range members {
		l := m.listen(":80")
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() {
					treat(c)
					c.Close()
				})
			}
		})
		b.Cleanup(func() {
			l.Close()
			wg.Wait()
		})
	}
	return w, members, at(front, 80)
}
