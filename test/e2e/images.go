package main

// image describes an image with one or more names.
type image struct {
	names      []string
	layers     []layer
	entrypoint []string
	command    []string
	user       string
}

// layer describes the content of a layer. Images share layers with the same name.
type layer struct {
	name     string
	packages []string           // Debian packages, with what they depend on
	programs map[string]program // by path
	files    map[string]string  // texts by path
	links    map[string]string  // targets of symbolic links by path
	open     []string           // directories that everybody can write to
	applets  string             // path of busybox, which gets a link for each of its applets
}

// program is a program, or another file, in the directory of programs.
type program struct {
	name string
	mode int64 // bits besides rwxr-xr-x
}

// repository is where Kubernetes keeps the images of its tests.
const repository = "registry.k8s.io/e2e-test-images/"

// images returns the images of the [Conformance] tests. Their names and tags are those in test/utils/image/manifest.go
// of k8s.io/kubernetes.
func images() []image {
	agnhost := []layer{busybox(), tools(), {
		name: "agnhost", files: agnhostUsers(), links: map[string]string{"agnhost-2": "agnhost"},
		programs: map[string]program{
			"agnhost": {name: "agnhost"}, "coredns": {name: "coredns"},
			"localhost.crt": {name: "localhost.crt"}, "localhost.key": {name: "localhost.key"},
		},
	}}
	return []image{
		{
			names:  []string{repository + "agnhost:2.63.0", repository + "agnhost:2.55"},
			layers: agnhost, entrypoint: []string{"/agnhost"}, command: []string{"pause"},
		},
		{names: []string{repository + "busybox:1.37.0-1"}, layers: []layer{busybox()}, command: []string{"sh"}},
		{names: []string{repository + "nonroot:1.5"}, layers: []layer{busybox()}, command: []string{"sh"}, user: "1234"},
		{names: []string{repository + "glibc-dns-testing:2.0.0"}, layers: []layer{busybox(), tools()}, command: []string{"bash"}},
		{
			names:  []string{repository + "nginx:1.15-4", repository + "nginx:1.27-0"},
			layers: []layer{busybox(), nginx()}, command: []string{"nginx", "-g", "daemon off;"},
		},
		{
			names:      []string{repository + "kitten:1.8"},
			layers:     append(agnhost, text("kitten", "data.json", `{"image": "kitten.jpg"}`)),
			entrypoint: []string{"/agnhost"}, command: []string{"test-webserver"},
		},
		{
			names:      []string{repository + "nautilus:1.8"},
			layers:     append(agnhost, text("nautilus", "data.json", `{"image": "nautilus.jpg"}`)),
			entrypoint: []string{"/agnhost"}, command: []string{"test-webserver"},
		},
		{
			names: []string{repository + "nonewprivs:1.4"},
			layers: []layer{busybox(), programLayer("nonewprivs", map[string]program{
				"usr/local/bin/nnp": {name: "nonewprivs", mode: 0o6000},
			})},
			command: []string{"nnp"},
		},
		{
			names:      []string{repository + "sample-apiserver:1.29.2"},
			layers:     []layer{programLayer("sample-apiserver", map[string]program{"sample-apiserver": {name: "sample-apiserver"}})},
			entrypoint: []string{"/sample-apiserver"},
		},
		{
			names:   []string{"registry.k8s.io/etcd:3.6.8-0"},
			layers:  []layer{programLayer("etcd", map[string]program{"usr/local/bin/etcd": {name: "etcd"}})},
			command: []string{"etcd"},
		},
		{
			names:      []string{"registry.k8s.io/pause:3.10.2"},
			layers:     []layer{programLayer("pause", map[string]program{"pause": {name: "agnhost"}})},
			entrypoint: []string{"/pause", "pause"}, user: "65535:65535",
		},
	}
}

const (
	systemUsers  = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
	systemGroups = "root:x:0:\nnogroup:x:65534:\n"
)

// users are the users of all images. Tests of volumes expect that the groups of files have no names.
func users() map[string]string {
	return map[string]string{
		"etc/passwd": systemUsers, "etc/group": systemGroups, "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
	}
}

// agnhostUsers are the users that tests expect in agnhost: user-defined-in-image is in two groups.
func agnhostUsers() map[string]string {
	return map[string]string{
		"etc/passwd": systemUsers + "user-defined-in-image:x:1000:1000::/home:/bin/sh\n",
		"etc/group":  systemGroups + "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n",
	}
}

// busybox returns a layer with busybox and bash as the shell. The shell of Debian's busybox prefers applets to the programs
// of other layers, and drops environment variables with names that it cannot use.
func busybox() layer {
	return layer{
		name: "busybox", packages: []string{"bash", "busybox-static"}, applets: "usr/bin/busybox", files: users(),
		links: map[string]string{
			"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/bin/sh": "bash",
		},
		open: []string{"tmp", "var/tmp", "uploads"},
	}
}

func tools() layer {
	return layer{name: "tools", packages: []string{
		"bind9-dnsutils", "coreutils", "curl", "iperf", "iproute2", "libc-bin", "netcat-openbsd", "util-linux",
	}, links: map[string]string{"usr/local/bin/iperf": "/usr/bin/iperf", "usr/bin/nc": "nc.openbsd"}}
}

func nginx() layer {
	return layer{
		name: "nginx", packages: []string{"nginx"}, open: []string{"var/log/nginx", "var/lib/nginx", "run"},
		files: map[string]string{
			"etc/nginx/nginx.conf": `user root;
events {}
error_log /dev/stderr;
pid /tmp/nginx.pid;
http {
  access_log /dev/stdout;
  server {
    listen 80;
    listen [::]:80;
    root /usr/share/nginx/html;
  }
}
`,
			"usr/share/nginx/html/index.html": "<!DOCTYPE html>\n<title>Welcome to nginx!</title>\n<h1>Welcome to nginx!</h1>\n",
		},
	}
}

func programLayer(name string, programs map[string]program) layer {
	return layer{name: name, programs: programs}
}

func text(name, path, content string) layer {
	return layer{name: name, files: map[string]string{path: content}}
}
