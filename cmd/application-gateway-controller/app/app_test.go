package app

import (
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kaz/internal/cloudconfig"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the page anew")

// TestReference compares the flags in docs/reference/application-gateway-controller.md with the program's own flags.
func TestReference(t *testing.T) {
	sets := newOptions().flags().FlagSets
	page.Part{
		File: "../../../docs/reference/application-gateway-controller.md", Name: "flags",
		Hint: "go test ./cmd/application-gateway-controller/app -run TestReference -update",
	}.Check(t, page.Flags(sets["gateway"], sets["ingress"], sets["server"], sets["leader election"], sets["kubernetes"]), *update)
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func execute(values map[string]string, args ...string) error {
	command := Command(environment(values))
	command.SetArgs(args)
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	command.SilenceErrors = true
	return command.Execute()
}

const anID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/gate"

// TestBadFlags checks that all mistakes are named at once, before anything is opened.
func TestBadFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"":                           {"neither --gateway-id nor --gateway is given"},
		"--gateway=a --gateway-id=b": {"exclude each other"},
		"--gateway-id=/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/l --drift-interval=1s": {
			"--gateway-id", "applicationGateways/NAME", "--drift-interval 1s: must be 5s or more",
		},
		"--gateway=a --cluster-id=a_b":                             {`--cluster-id "a_b": must be 1 to 8`},
		"--gateway=a --ingress-class= --ingress-class-annotation=": {"want at least one"},
		"--gateway=/subscriptions/s/x":                             {`--gateway "/subscriptions/s/x": must be a name; --gateway-id takes an id`},
		"--gateway=a --further-gateway-ids=b": {
			`--further-gateway-ids "b": must be /subscriptions/.../providers/Microsoft.Network/applicationGateways/NAME`,
		},
		"--gateway=a --answers-service=b --answers-address=80": {
			`--answers-service "b": must be NAMESPACE/NAME`, `--answers-address "80": must be HOST:PORT`,
		},
		"--gateway=a more": {"no arguments are allowed"},
	} {
		err := execute(nil, strings.Fields(args)...)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %s", args, err, w)
			}
		}
	}
}

// TestEnvironment checks the variables of AGIC.
func TestEnvironment(t *testing.T) {
	o := newOptions()
	sets := o.flags()
	o.readEnvironment(sets, environment(map[string]string{
		"APPGW_NAME": "gate", "APPGW_RESOURCE_GROUP": "g", "APPGW_SUBSCRIPTION_ID": "s", "KUBERNETES_WATCHNAMESPACE": "a,b",
		"USE_PRIVATE_IP": "TRUE",
		"INGRESS_CLASS":  "x", "INGRESS_CLASS_RESOURCE_DEFAULT": "true", "RECONCILE_PERIOD_SECONDS": "45", "HTTP_SERVICE_PORT": "9000",
		"APPGW_RESOURCE_IDS":  anID + "," + anID + "2," + anID + "2",
		"APPGW_ENABLE_DEPLOY": "false", "AGIC_POD_NAMESPACE": "ns",
	}))
	class := ingress.Class{Value: "x", Name: ingress.ClassName, Controller: ingress.ClassValue, TakesUnclassed: true}
	if o.gateway != "gate" || o.gatewayGroup != "g" || o.gatewaySubscription != "s" || strings.Join(o.namespaces, " ") != "a b" ||
		!o.ingress.Private || o.class != class || o.drift != 45*time.Second || o.metricsAddress != ":9000" ||
		o.election.ResourceNamespace != "ns" || len(o.environment) > 0 {
		t.Errorf("%+v", o)
	}
	if all := o.applications(cloudconfig.Config{}); len(all) != 2 || string(all[1]) != anID+"2" {
		t.Errorf("application gateways %v", all)
	}
	if err := sets.FlagSet("gateway").Parse([]string{"--gateway=other"}); err != nil || o.gateway != "other" {
		t.Errorf("the flag does not go before the variable: %q, %v", o.gateway, err)
	}
	o = newOptions()
	o.readEnvironment(o.flags(), environment(map[string]string{"INGRESS_CLASS_RESOURCE_ENABLED": "false"}))
	if o.class.Name != "" {
		t.Errorf("classes are read: %+v", o.class)
	}
}

// TestBadEnvironment checks that variables with a value that is not allowed are named, all at once.
func TestBadEnvironment(t *testing.T) {
	err := execute(map[string]string{
		"APPGW_NAME": "gate", "USE_PRIVATE_IP": "maybe", "RECONCILE_PERIOD_SECONDS": "soon", "APPGW_ENABLE_DEPLOY": "true",
		"MULTI_CLUSTER_MODE":             "true",
		"INGRESS_CLASS_RESOURCE_ENABLED": "x", "HTTP_SERVICE_PORT": "99999",
	})
	for _, want := range []string{
		`$USE_PRIVATE_IP "maybe": not allowed; see --use-private-ip`, `$RECONCILE_PERIOD_SECONDS "soon"`, `$APPGW_ENABLE_DEPLOY "true": make the`,
		`$MULTI_CLUSTER_MODE "true"`, `$INGRESS_CLASS_RESOURCE_ENABLED "x": must be true or false`, `$HTTP_SERVICE_PORT "99999"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestConfigOfPod checks the cloud configuration of a pod without azure.json.
func TestConfigOfPod(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	o := newOptions()
	o.cloudConfig, o.gatewayID = "/nowhere", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/gate"
	c, err := o.readConfig(environment(map[string]string{
		"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_FEDERATED_TOKEN_FILE": "/token",
	}), log)
	if err != nil || !c.UseFederatedWorkloadIdentityExtension || c.AADClientID != "c" || c.SubscriptionID != "s" ||
		string(o.id(c)) != o.gatewayID {
		t.Errorf("%+v, %v", c.Auth, err)
	}
	c, err = o.readConfig(environment(map[string]string{"AZURE_CLIENT_ID": "c"}), log)
	if err != nil || !c.UseManagedIdentityExtension || c.UserAssignedIdentityID != "c" {
		t.Errorf("%+v, %v", c.Auth, err)
	}
	o.gatewayID, o.gateway = "", "gate"
	if _, err := o.readConfig(environment(nil), log); err == nil || !strings.Contains(err.Error(), "--cloud-config: open /nowhere") {
		t.Error(err)
	}
}
