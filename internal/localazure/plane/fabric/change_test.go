package fabric_test

import (
	"bufio"
	"context"
	"fmt"
	"testing"
	"time"
)

// Changes of other resources neither cut nor refuse a connection.
func TestTrafficDuringChanges(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	rules := list{rule("floating", "Tcp", 80, 80, floats), rule("translated", "Tcp", 81, 8081, nil)}
	w.balancer(balancing{public: id, rules: rules})
	for _, m := range w.members(2, front) {
		m.serve(":80")
		m.serve(":8081")
	}
	ctx, stop := context.WithCancel(t.Context())
	failures := make(chan error, 10)
	watch := func(f func() error) {
		go func() {
			var err error
			for err == nil && ctx.Err() == nil {
				err = f()
			}
			failures <- err
		}()
	}
	watched := 0
	for _, port := range []int{80, 81} {
		c, err := w.outside.open("tcp", at(front, port), generous)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r := bufio.NewReader(c)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		watch(func() error {
			_ = c.SetDeadline(time.Now().Add(generous))
			if _, err := fmt.Fprintln(c, "still there?"); err != nil {
				return err
			}
			_, err := r.ReadString('\n')
			return err
		})
		watch(func() error {
			_, err := w.outside.try(at(front, port), generous)
			return err
		})
		watched += 2
	}
	var last *machine
	for i := range 8 {
		w.group("open", allow("all", 100, "Inbound", object{}), deny("other", 200+i, "Inbound", object{"destinationPortRange": "99"}))
		w.balancer(balancing{public: id, rules: append(list{rule(fmt.Sprint("more", i), "Udp", 1000+i, 1000+i, floats)}, rules...)})
		w.put(provider+"/routeTables/routes",
			object{"location": "eastus", "properties": object{"routes": list{object{"name": "r", "properties": object{
				"addressPrefix": fmt.Sprintf("10.244.%d.0/24", i), "nextHopType": "None"}}}}})
		w.subnet(object{"networkSecurityGroup": ref(provider + "/networkSecurityGroups/open"),
			"routeTable": ref(provider + "/routeTables/routes")})
		if last != nil {
			if err := w.fabric.Detach(t.Context(), last.nic); err != nil {
				t.Error(err)
			}
		}
		last = w.machine(fmt.Sprint("other", i), nodes, nil, nil)
	}
	stop()
	for range watched {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
