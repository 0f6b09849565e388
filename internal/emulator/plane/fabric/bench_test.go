package fabric_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// BenchmarkConnections opens connections to a public frontend with floating IP and two
// receivers, 16 at a time, each until the receiver ended it.
func BenchmarkConnections(b *testing.B) {
	w, front := benchmarkWorld(b, func(c net.Conn) {})
	var wg sync.WaitGroup
	turns := make(chan struct{}, 16)
	b.ResetTimer()
	for range 16 {
		wg.Go(func() {
			w.outside.do(func() error {
				for range turns {
					c, err := net.Dial("tcp", front)
					if err != nil {
						return err
					}
					_, _ = io.Copy(io.Discard, c)
					c.Close()
				}
				return nil
			})
		})
	}
	for range b.N {
		turns <- struct{}{}
	}
	close(turns)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "connections/s")
}

// BenchmarkThroughput sends a megabyte after the other over one connection through a
// public frontend with floating IP.
func BenchmarkThroughput(b *testing.B) {
	w, front := benchmarkWorld(b, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c, err := w.outside.open("tcp", front, generous)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const size = 1 << 20
	buffer := make([]byte, size)
	b.SetBytes(size)
	b.ResetTimer()
	for range b.N {
		if _, err := c.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*size*8/1e9/b.Elapsed().Seconds(), "Gbit/s")
}

// benchmarkWorld has two receivers behind a frontend, which treat connections so and
// then end them.
func benchmarkWorld(b *testing.B, treat func(net.Conn)) (*world, string) {
	w := start(b)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: id, rules: list{rule("web", "Tcp", 80, 80, floats)}})
	for _, m := range w.members(2, front) {
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
	return w, at(front, 80)
}
