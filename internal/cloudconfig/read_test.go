package cloudconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure/secret"
)

func load(t *testing.T, name string) (Config, []string) {
	t.Helper()
	c, warnings, err := Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return c, texts(warnings)
}

func texts(warnings []Warning) []string {
	var all []string
	for _, w := range warnings {
		w.Source = ""
		all = append(all, w.String())
	}
	return all
}

func TestExampleFile(t *testing.T) {
	got, warnings := load(t, "service-principal.json")
	want := Default()
	want.Cloud = PublicCloud
	want.TenantID = "11111111-1111-1111-1111-111111111111"
	want.SubscriptionID = "00000000-0000-0000-0000-000000000001"
	want.NetworkResourceSubscriptionID = want.SubscriptionID
	want.AADClientID = "22222222-2222-2222-2222-222222222222"
	want.AADClientSecret = secret.New("s3cr3t-in-the-file")
	want.ResourceGroup = "paper-mill-rg"
	want.VnetResourceGroup = "paper-mill-rg"
	want.SecurityGroupResourceGroup = "paper-mill-rg"
	want.RouteTableResourceGroup = "paper-mill-rg"
	want.LoadBalancerResourceGroup = "paper-mill-rg"
	want.PrivateLinkServiceResourceGroup = "paper-mill-rg"
	want.Location = "northeurope"
	want.SubnetName = "nodes"
	want.SecurityGroupName = "paper-mill-nsg"
	want.VnetName = "paper-mill-vnet"
	want.RouteTableName = "paper-mill-routes"
	want.PrimaryScaleSetName = "paper-mill-vmss"
	want.CloudProviderBackoff = true
	want.CloudProviderBackoffRetries = 6
	want.RateLimit = RateLimit{Enabled: true, QPS: 6, Bucket: 20}
	want.UseInstanceMetadata = true
	want.ExcludeMasterFromStandardLB = false
	want.Tags = "mill=paper,owner=ops"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func TestYAMLInAnyCaseReadsTheSame(t *testing.T) {
	fromJSON, _ := load(t, "service-principal.json")
	fromYAML, warnings := load(t, "service-principal.yaml")
	fromYAML.Cloud = fromJSON.Cloud // the spelling is kept
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Error(diff)
	}
	if len(warnings) > 0 {
		t.Error(warnings)
	}
}

func TestMinimalAndTabbedFiles(t *testing.T) {
	minimal, _ := load(t, "metadata-only.json")
	if err := minimal.Validate(); err != nil || !minimal.UseInstanceMetadata {
		t.Error(err)
	}
	local, _ := load(t, "managed-identity.json")
	if err := local.Validate(); err != nil || local.RouteUpdateInterval != 2*time.Second || local.ResourceGroup != "rg1" {
		t.Errorf("%v %v %q", err, local.RouteUpdateInterval, local.ResourceGroup)
	}
	if got := local.MetadataURL(); got != "https://127.0.0.1:18443/metadata/endpoints?api-version=2019-05-01" {
		t.Error(got)
	}
}

func TestEverything(t *testing.T) {
	c, warnings := load(t, "everything.yaml")
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	wantLBs := []LoadBalancer{
		{Name: "kubernetes", PrimaryVMSet: "vmss0", AllowServicePlacement: true},
		{
			Name: "lb2", PrimaryVMSet: "vmss1",
			ServiceLabelSelector: &LabelSelector{MatchLabels: map[string]string{"lb": "2"}},
			NodeSelector: &LabelSelector{MatchExpressions: []LabelRequirement{{Key: "pool", Operator: "In",
				Values: []string{"a", "b"}}}},
		},
	}
	if diff := cmp.Diff(wantLBs, c.MultipleStandardLoadBalancerConfigurations); diff != "" {
		t.Error(diff)
	}
	wantTokens := &AuxiliaryTokenProvider{SubscriptionID: "s", ResourceGroup: "vaults", VaultName: "keys", SecretName: "token"}
	if diff := cmp.Diff(wantTokens, c.AuxiliaryTokenProvider); diff != "" {
		t.Error(diff)
	}
	if c.LoadBalancerBackendPoolConfigurationType != PoolNodeIP || c.ExcludeMasterFromStandardLB {
		t.Error(c.LoadBalancerBackendPoolConfigurationType, c.ExcludeMasterFromStandardLB)
	}
	if !c.MultiTenant() || c.NetworkTenantID() != "33333333-3333-3333-3333-333333333333" || c.Credential() != ManagedIdentity {
		t.Error(c.NetworkTenantID(), c.Credential())
	}
	// Each inert key and each unknown key gives one warning.
	var keys []string
	for _, w := range warnings {
		key, _, _ := strings.Cut(w, ":")
		keys = append(keys, key)
	}
	wantKeys := []string{
		"availabilitySetNodesCacheTTLInSeconds", "cloudProviderBackoffMode",
		"excludeMasterFromStandardLB", "identitySystem", "listVmssVirtualMachinesWithoutInstanceView", "vnetNam", "tags",
	}
	if diff := cmp.Diff(wantKeys, keys); diff != "" {
		t.Errorf("%s\n%s", diff, strings.Join(warnings, "\n"))
	}
	if !slices.Contains(warnings, "vnetNam: unknown key, ignored; did you mean vnetName?") {
		t.Error(warnings)
	}
	if err := c.ValidateFor("Kubernetes"); err != nil {
		t.Error(err)
	}
	if err := c.ValidateFor("c1"); err == nil ||
		!strings.Contains(err.Error(), `["kubernetes","lb2"]: one of the load balancers must have the name of the cluster, "c1"`) {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	c := Default()
	for what, pair := range map[string][2]any{
		"vm type":       {c.VMType, VMTypeScaleSet},
		"config type":   {c.CloudConfigType, ConfigMerge},
		"sku":           {c.LoadBalancerSKU, SKUStandard},
		"pool":          {c.LoadBalancerBackendPoolConfigurationType, PoolNodeIPConfiguration},
		"probe mode":    {c.ClusterServiceLoadBalancerHealthProbeMode, ProbeServiceNodePort},
		"probe port":    {c.ClusterServiceSharedLoadBalancerProbePort, 10256},
		"probe path":    {c.ClusterServiceSharedLoadBalancerProbePath, "/healthz"},
		"rules":         {c.MaximumLoadBalancerRuleCount, 250},
		"masters":       {c.ExcludeMasterFromStandardLB, true},
		"route flush":   {c.RouteUpdateInterval, 30 * time.Second},
		"route wait":    {c.RouteUpdateWaiting, 30 * time.Second},
		"retries":       {c.CloudProviderBackoffRetries, 1},
		"first wait":    {c.CloudProviderBackoffDuration, 5 * time.Second},
		"wait factor":   {c.CloudProviderBackoffExponent, 1.5},
		"jitter":        {c.CloudProviderBackoffJitter, 1.0},
		"machines":      {c.VMCacheTTL, time.Minute},
		"scale sets":    {c.VMSSCacheTTL, 10 * time.Minute},
		"other nodes":   {c.NonVmssUniformNodesCacheTTL, 15 * time.Minute},
		"balancers":     {c.LoadBalancerCacheTTL, 2 * time.Minute},
		"grace":         {c.NodeInstanceNotFoundGracePeriod, time.Duration(0)},
		"outbound snat": {c.DisableOutboundSNAT, false},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	for _, zero := range []string{`{}`, ``, "null", "\xef\xbb\xbf{}",
		`{"vmType":"","routeUpdateWaitingInSeconds":-3,"vmCacheTTLInSeconds":0,"excludeMasterFromStandardLB":null}`} {
		got, _, err := Parse([]byte(zero))
		if diff := cmp.Diff(c, got); diff != "" || err != nil {
			t.Errorf("%q: %v%s", zero, err, diff)
		}
	}
	again := c
	again.Complete()
	if diff := cmp.Diff(c, again); diff != "" {
		t.Error(diff)
	}
}

func TestTypeMismatchesAreAllReported(t *testing.T) {
	_, _, err := Parse([]byte(`{
		"tenantId": ["x"], "aadClientSecret": {"value": "s3cr"}, "useInstanceMetadata": "yes", "putVMSSVMBatchSize": "6",
		"vmCacheTTLInSeconds": 1.5, "cloudProviderBackoffExponent": true, "tagsMap": ["a"], "auxiliaryTokenProvider": 7,
		"multipleStandardLoadBalancerConfigurations": [{"name": {}, "nodeSelector": {"matchExpressions": [{"values": "a"}]}}, 3],
		"diskRateLimit": {"cloudProviderRateLimitQPS": "fast"}, "excludeMasterFromStandardLB": "maybe", "nsgCacheTTLInSeconds": 9e99
	}`))
	want := `cloud config: 14 problems:
  - aadClientSecret [redacted]: wanted text
  - auxiliaryTokenProvider 7: wanted an object
  - cloudProviderBackoffExponent true: wanted a number
  - diskRateLimit.cloudProviderRateLimitQPS "fast": wanted a number
  - excludeMasterFromStandardLB "maybe": wanted true or false
  - multipleStandardLoadBalancerConfigurations[0].name (an object): wanted text
  - multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchExpressions[0].values "a": wanted a list of texts
  - multipleStandardLoadBalancerConfigurations[1] 3: wanted an object
  - nsgCacheTTLInSeconds 9e99: wanted a whole number of seconds
  - putVMSSVMBatchSize "6": wanted a whole number
  - tagsMap (a list): wanted an object of texts
  - tenantId (a list): wanted text
  - useInstanceMetadata "yes": wanted true or false
  - vmCacheTTLInSeconds 1.5: wanted a whole number of seconds`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableDocuments(t *testing.T) {
	for doc, want := range map[string]string{
		"{\n  \"tenantId\": \"a\"\n  \"cloud\": \"b\"\n}": `not JSON: line 3, column 3: invalid character '"' after object key:value pair`,
		`{"aadClientSecret": "s3cr`:                       "not JSON: line 1, column 25: unexpected end of JSON input",
		"a: b: c":                                         "neither JSON nor YAML: yaml: mapping values are not allowed in this context",
		"aadClientSecret: *s3cr":                          "neither JSON nor YAML: yaml: unknown anchor … referenced",
		"- a\n- b":                                        "the document is a single value or a list; want an object of keys and values",
		"aadClientSecret=s3cr":                            "the document is a single value or a list; want an object of keys and values",
	} {
		_, _, err := Parse([]byte(doc))
		if got := fmt.Sprint(err); got != "cloud config: "+want {
			t.Errorf("%q:\n got %s\nwant cloud config: %s", doc, got, want)
		}
	}
	if _, _, err := Load("testdata/absent.json"); err == nil ||
		!strings.Contains(err.Error(), "open cloud config: open testdata/absent.json: no such file") {
		t.Error(err)
	}
}

func TestRepeatedKeys(t *testing.T) {
	for doc, want := range map[string]string{
		`{"location":"a","location":"b"}`:                       "location: is set more than once; the last value is used",
		"location: a\nlocation: b":                              "location: is set more than once; the last value is used",
		`{"location":"b","Location":"a"}`:                       "location: is set as Location and as location; location is used",
		"{aadClientSecret:s3cr, location: b}":                   "aadClientSecret: unknown key, ignored; did you mean aadClientSecret?",
		`{"location":"b","whollyUnknown":1}`:                    "whollyUnknown: unknown key, ignored",
		`{"location":"b","auxiliaryTokenProvider":{"vault":1}}`: "auxiliaryTokenProvider.vault: unknown key, ignored",
	} {
		c, warnings, err := Parse([]byte(doc))
		if err != nil || c.Location != "b" || !slices.Equal(texts(warnings), []string{want}) {
			t.Errorf("%s: %q %q %v", doc, c.Location, warnings, err)
		}
	}
}

func TestMerge(t *testing.T) {
	const secret = `{"aadClientSecret":"s3cr","tenantId":"of-secret","tagsMap":{"b":"2"},"auxiliaryTokenProvider":{"vaultName":"v"}}`
	file := func(kind string) []byte {
		return []byte(`{"cloudConfigType":"` + kind +
			`","resourceGroup":"RG1","tenantId":"of-file","tagsMap":{"a":"1"},"auxiliaryTokenProvider":{"secretName":"s"},"oops":1}`)
	}
	for kind, want := range map[string]struct {
		tenant, group, secret, vaultSecret string
		tags, warnings                     int
	}{
		"":       {"of-secret", "rg1", "s3cr", "s", 2, 1},
		"merge":  {"of-secret", "rg1", "s3cr", "s", 2, 1},
		"file":   {"of-file", "rg1", "", "s", 1, 1},
		"secret": {"of-secret", "", "s3cr", "", 1, 0},
	} {
		c, warnings, err := Merge(file(kind), []byte(secret))
		if err != nil || c.TenantID != want.tenant || c.ResourceGroup != want.group || c.AADClientSecret.Reveal() != want.secret ||
			c.AuxiliaryTokenProvider.SecretName != want.vaultSecret || len(c.TagsMap) != want.tags || len(warnings) != want.warnings {
			t.Errorf("%q: %+v %v %v", kind, c, warnings, err)
		}
	}
	only, _, err := Merge(nil, []byte(secret))
	if err != nil || only.TenantID != "of-secret" {
		t.Error(only, err)
	}
	if data, err := SecretData(map[string][]byte{"cloud-config": []byte("{}")}, SecretKey); err != nil || string(data) != "{}" {
		t.Error(data, err)
	}
	if _, err := SecretData(nil, SecretKey); err == nil || !strings.Contains(err.Error(), `no data in secret under key "cloud-config"`) {
		t.Error(err)
	}
}

func TestReadTellsEverythingAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "azure.json")
	if err := os.WriteFile(path, []byte(`{"vmType":7,"subscriptionId":{},"location":"eastus","loadBalancerSku":"gold"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Read(Sources{Path: path, Secret: []byte(`{"routeTableName":[]}`)})
	want := `cloud config: 6 problems:
  - ` + path + `: subscriptionId (an object): wanted text
  - secret: routeTableName (a list): wanted text
  - resourceGroup: is required: the resource group of the cluster
  - vmType "7": must be one of vmss, standard, vmssflex
  - useInstanceMetadata false: useInstanceMetadata must be enabled without Azure credentials; credentials are one of useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, aadClientSecret, aadClientCertPath, aadMSIDataPlaneIdentityPath
  - loadBalancerSku "gold": must be one of basic, standard, service`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
	// An unreadable document gives no errors about missing keys.
	_, _, err = Read(Sources{Secret: []byte(`{`)})
	if got := fmt.Sprint(err); got != "cloud config: secret: not JSON: line 1, column 1: unexpected end of JSON input" {
		t.Error(got)
	}
	if _, _, err = Read(Sources{}); err == nil || !strings.Contains(err.Error(), "neither a file nor a secret is given") {
		t.Error(err)
	}
}

func TestEnvironmentVariablesWin(t *testing.T) {
	variables := map[string]string{
		"AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "s3cr",
		"AZURE_ENVIRONMENT_FILEPATH": "/etc/stack.json", "AZURE_FEDERATED_TOKEN_FILE": "",
	}
	lookup := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	c, _, err := Read(Sources{Path: "testdata/managed-identity.json", Environment: lookup})
	if err != nil || c.TenantID != "tenant" || c.AADClientID != "client" || c.AADClientSecret.Reveal() != "s3cr" ||
		c.EnvironmentFile != "/etc/stack.json" {
		t.Errorf("%+v %v", c, err)
	}
	if c.Credential() != ManagedIdentity {
		t.Error(c.Credential())
	}
	variables["AZURE_FEDERATED_TOKEN_FILE"] = "/var/run/token"
	c.ApplyEnvironment(lookup)
	if c.Credential() != WorkloadIdentity || c.AADFederatedTokenFile != "/var/run/token" {
		t.Error(c.Credential())
	}
	c = Default()
	c.ApplyEnvironment(lookup)
	if c.UseFederatedWorkloadIdentityExtension = false; c.Credential() != ClientSecret {
		t.Error(c.Credential())
	}
}

// oracle has one key of each plain type. Earlier implementations decode their file like this.
type oracle struct {
	Location string            `json:"location"`
	Backoff  bool              `json:"cloudProviderBackoff"`
	Batch    int               `json:"putVMSSVMBatchSize"`
	Jitter   float64           `json:"cloudProviderBackoffJitter"`
	TagsMap  map[string]string `json:"tagsMap"`
}

func TestReadsAsTheStructDecoderDoes(t *testing.T) {
	names := []string{"location", "LOCATION", "Location", "cloudProviderBackoff", "cloudproviderbackoff", "putVMSSVMBatchSize",
		"PutVmssVmBatchSize", "cloudProviderBackoffJitter", "tagsMap", "other"}
	scalar := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[ -~äß]*`), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.IntRange(1, 1000), func(n int) any { return n }),
		// Earlier implementations format fractions with single precision; these values need no more.
		rapid.Map(rapid.IntRange(1, 1000), func(n int) any { return float64(n) / 8 }),
		rapid.Just[any](nil),
	)
	value := rapid.OneOf(scalar,
		rapid.Map(rapid.MapOfN(rapid.StringMatching("[a-z]{1,3}"), scalar, 0, 3), func(m map[string]any) any { return m }))
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(rapid.SampledFrom(names), value).Draw(t, "fields")
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "yaml") {
			if data, err = yaml.JSONToYAML(data); err != nil {
				t.Fatal(err)
			}
		}
		var want oracle
		wantErr := yaml.Unmarshal(data, &want)
		c, _, err := Parse(data)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%s\nours: %v\ntheirs: %v", data, err, wantErr)
		}
		if err != nil {
			return
		}
		got := oracle{c.Location, c.CloudProviderBackoff, c.PutVMSSVMBatchSize, c.CloudProviderBackoffJitter, c.TagsMap}
		if want.Batch == 0 {
			want.Batch = 1
		}
		if want.Jitter == 0 {
			want.Jitter = 1
		}
		if want.Location != got.Location || want.Backoff != got.Backoff || want.Batch != got.Batch || want.Jitter != got.Jitter ||
			!maps.Equal(want.TagsMap, got.TagsMap) {
			t.Fatalf("%s\nours: %+v\ntheirs: %+v", data, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"multipleStandardLoadBalancerConfigurations":[null,{"nodeSelector":{}}],"diskRateLimit":null,"tags":"=,a==b,null"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data)
		if err == nil && utf8Secret(c) && strings.Contains(fmt.Sprintf("%+v %#v", c, c), c.AADClientSecret.Reveal()) {
			t.Errorf("secret is shown")
		}
		again := c
		again.Complete()
		if diff := cmp.Diff(c, again); diff != "" {
			t.Error(diff)
		}
		_ = c.Validate()
		_ = c.ResourceTags()
		_ = c.RateLimits()
	})
}

// utf8Secret reports whether the secret cannot be part of other values by chance.
func utf8Secret(c Config) bool { return strings.HasPrefix(c.AADClientSecret.Reveal(), "s3cr3t-") }
