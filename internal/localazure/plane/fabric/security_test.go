package fabric_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/wiring"
)

func outsideAddresses() (v4, v6 netip.Addr) { return wiring.Outside() }

func securityRule(access, name string, priority int, direction string, more object) object {
	p := object{"priority": priority, "direction": direction, "access": access, "protocol": "*",
		"sourcePortRange": "*", "destinationPortRange": "*", "sourceAddressPrefix": "*", "destinationAddressPrefix": "*"}
	for k, v := range more {
		if k == "destinationPortRanges" || k == "sourceAddressPrefixes" || k == "destinationAddressPrefixes" {
			delete(p, k[:len(k)-1])
			delete(p, k[:len(k)-2])
		}
		p[k] = v
	}
	return object{"name": name, "properties": p}
}

func allow(name string, priority int, direction string, more object) object {
	return securityRule("Allow", name, priority, direction, more)
}

func deny(name string, priority int, direction string, more object) object {
	return securityRule("Deny", name, priority, direction, more)
}

// group writes a security group.
func (w *lab) group(name string, rules ...any) azure.ID {
	w.Helper()
	id := provider + azure.ID("/networkSecurityGroups/"+name)
	if rules == nil {
		rules = list{}
	}
	w.put(id, object{"location": "eastus", "properties": object{"securityRules": rules}})
	return id
}

func TestSecurityGroupsWithinASubnet(t *testing.T) {
	t.Parallel()
	w := start(t)
	group := w.group("nsg", deny("a-to-b", 100, "Inbound", object{"protocol": "Tcp", "destinationPortRanges": list{"80", "8000-8080"}}))
	w.subnet(object{"networkSecurityGroup": ref(group)})
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	for _, port := range []string{":80", ":81", ":8010"} {
		b.serve(port)
	}
	b.servePackets(":80")
	for _, to := range []netip.Addr{b.v4, b.v6} {
		a.misses(at(to, 80))
		a.misses(at(to, 8010))
		a.reaches(at(to, 81))
		if _, err := a.send(at(to, 80), generous); err != nil {
			t.Errorf("udp is not denied: %v", err)
		}
	}
	// Rules with lower priority numbers come first. Replies need no rule, and established connections stay.
	w.group("nsg", allow("first", 100, "Inbound", object{"protocol": "Tcp", "sourceAddressPrefix": a.v4.String()}),
		deny("a-to-b", 101, "Inbound", object{"protocol": "Tcp"}))
	a.reaches(at(b.v4, 80))
	a.misses(at(b.v6, 80))
	w.group("nsg", deny("out", 100, "Outbound", object{"destinationAddressPrefix": "VirtualNetwork"}))
	a.misses(at(b.v4, 80))
	a.misses(at(b.v6, 80))
}

// Inbound packets pass the subnet's group and then the interface's. Outbound packets pass the interface's first. Both
// must allow a packet.
func TestSecurityGroupsOfSubnetAndInterface(t *testing.T) {
	t.Parallel()
	w := start(t)
	subnets := w.group("subnets", allow("web", 100, "Inbound", object{"destinationPortRange": "80"}))
	mine := w.group("mine", deny("web", 100, "Inbound", object{"destinationPortRange": "80"}))
	w.subnet(object{"networkSecurityGroup": ref(subnets)})
	a := w.machine("a", nodes, nil, nil)
	b := w.machine("b", nodes, object{"networkSecurityGroup": ref(mine)}, nil)
	b.serve(":80")
	b.serve(":81")
	a.misses(at(b.v4, 80))
	a.reaches(at(b.v4, 81))
	w.group("mine")
	a.reaches(at(b.v4, 80))
	w.group("mine", deny("out", 100, "Outbound", object{"protocol": "Udp"}))
	a.serve(":80")
	a.servePackets(":80")
	b.reaches(at(a.v4, 80))
	if _, err := b.send(at(a.v4, 80), refused); err == nil {
		t.Error("udp leaves the interface")
	}
}

func TestServiceTags(t *testing.T) {
	t.Parallel()
	w := start(t)
	host, host6 := outsideAddresses()
	id, _ := w.publicIP("public", "IPv4")
	id6, six := w.publicIP("public6", "IPv6")
	m := w.machine("m", nodes, nil, object{"publicIPAddress": ref(id), "publicIPAddress6": ref(id6)})
	a := w.machine("a", nodes, nil, nil)
	m.serve(":80")
	m.serve(":81")
	w.outside.serve(":80")
	public := netip.MustParseAddr(m.reaches(at(host, 80)).client)
	for _, step := range []struct {
		name            string
		rules           list
		outside, inside bool
		probe           bool
	}{
		{"defaults", list{}, false, true, true},
		{"internet", list{allow("in", 100, "Inbound", object{"sourceAddressPrefix": "Internet"})}, true, true, true},
		{"not the network", list{deny("in", 100, "Inbound", object{"sourceAddressPrefix": "VirtualNetwork"})}, false, false, false},
		{"not the probe", list{deny("in", 100, "Inbound", object{"sourceAddressPrefix": "AzureLoadBalancer"})}, false, true, false},
		{"one address", list{allow("in", 100, "Inbound", object{"sourceAddressPrefix": host.String() + "/32"})}, true, true, true},
		{"another address", list{allow("in", 100, "Inbound", object{"sourceAddressPrefix": "203.0.113.0/24"})}, false, true, true},
		{"an unknown service", list{allow("in", 100, "Inbound", object{"sourceAddressPrefix": "Storage"})}, false, true, true},
		{"the cloud", list{allow("in", 100, "Inbound", object{"sourceAddressPrefix": "AzureCloud"})}, true, true, true},
	} {
		group := w.group("nsg", step.rules...)
		w.subnet(object{"networkSecurityGroup": ref(group)})
		check := func(reach bool, from *machine, to netip.Addr) {
			t.Helper()
			if reach {
				from.reaches(at(to, 80))
			} else {
				from.misses(at(to, 80))
			}
		}
		check(step.outside, w.outside, public)
		check(step.inside, a, m.v4)
		if step.name == "internet" {
			if g := w.outside.reaches(at(six, 80)); g.client != host6.String() {
				t.Errorf("IPv6: %+v", g)
			}
		}
		err := dialPlatform(w, at(m.v4, 80), step.probe)
		if (err == nil) != step.probe {
			t.Errorf("%s: probe: %v, want it %v", step.name, err, step.probe)
		}
	}
	// Outbound rules can deny the internet, but not the platform's metadata.
	w.group("nsg", deny("out", 100, "Outbound", object{"destinationAddressPrefix": "Internet"}))
	m.misses(at(host, 80))
	if c, err := m.open("tcp", "169.254.169.254:80", generous); err != nil {
		t.Errorf("metadata: %v", err)
	} else {
		c.Close()
	}
}

func TestICMP(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	if err := a.ping(b.v4, generous); err != nil {
		t.Errorf("no group: %v", err)
	}
	w.subnet(object{"networkSecurityGroup": ref(w.group("nsg", deny("ping", 100, "Inbound", object{"protocol": "Icmp"})))})
	if err := b.ping(a.v4, refused); err == nil {
		t.Error("ping passes where it is denied")
	}
	b.serve(":80")
	a.reaches(at(b.v4, 80))
	w.group("nsg", allow("ping", 100, "Inbound", object{"protocol": "Icmp"}), deny("all", 101, "Inbound", object{}))
	if err := b.ping(a.v4, generous); err != nil {
		t.Errorf("allowed: %v", err)
	}
	a.misses(at(b.v4, 80))
}

// ping sends echo requests until a reply comes.
func (m *machine) ping(to netip.Addr, patience time.Duration) error {
	m.w.Helper()
	var c net.PacketConn
	m.do(func() (err error) {
		c, err = net.ListenPacket("ip4:icmp", m.v4.String())
		return err
	})
	defer c.Close()
	const request, reply = 8, 0
	// Type, code, checksum and then an identifier and a number, both 0.
	echo := []byte{request, 0, 0xf7, 0xff, 0, 0, 0, 0}
	buffer := make([]byte, 1500)
	for end := time.Now().Add(patience); ; {
		if _, err := c.WriteTo(echo, &net.IPAddr{IP: to.AsSlice()}); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for {
			n, from, err := c.ReadFrom(buffer)
			if err == nil && n > 0 && buffer[0] == reply && from.String() == to.String() {
				return nil
			}
			if err != nil && time.Now().After(end) {
				return err
			}
			if err != nil {
				break
			}
		}
	}
}
