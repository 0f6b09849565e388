// Package preflight checks, without a write, whether Azure will take a cluster. Layer L3.
package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/registry"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/finding"
	"kaz/internal/cluster/record"
	"kaz/internal/plan/rights"
)

// checker runs the checks of one plan.
type checker struct {
	deploy.Deployer
	finding.List
	p     cluster.Plan
	state record.State
	// offered are the sizes of the location, once they are read.
	offered map[string]size
}

// unread reports a check that could not be made.
func (c *checker) unread(check string, err error) {
	c.Warn(check, "give the caller the right to read this, or go on without the check", "not checked: %v", err)
}

// Run checks, without a write, whether Azure will take the plan. It checks the caller's credential and rights, the location,
// sizes, zones and quotas, names, and the resources that the definition expects to exist. If nothing is left to deploy, it
// checks only the credential.
func Run(ctx context.Context, d deploy.Deployer, p cluster.Plan) (finding.List, error) {
	c := &checker{Deployer: d, p: p}
	if !c.login(ctx) {
		return c.List, ctx.Err()
	}
	state, complete, err := d.Look(ctx, p)
	if err != nil {
		c.Add("resource group", "give the caller the role Contributor at the resource group", "%v", err)
		return c.List, ctx.Err()
	}
	c.state = state
	c.group()
	if complete && !c.Stop() {
		return c.List, ctx.Err()
	}
	c.rights(ctx)
	c.providers(ctx)
	if c.location(ctx) {
		c.sizes(ctx)
		imageChecker{c}.check(ctx)
		c.quota(ctx)
	}
	c.outbound()
	c.artifacts()
	c.registries()
	c.globalNames(ctx)
	c.publicName(ctx)
	c.existing(ctx)
	c.roles(ctx)
	c.locks(ctx)
	if !c.Stop() {
		c.validate(ctx)
	}
	return c.List, ctx.Err()
}

func (c *checker) subscription() azure.ID {
	return azure.SubscriptionID(c.p.Definition.Cluster.Spec.Azure.SubscriptionID)
}

// login checks the credential and the subscription. Without them no other check says anything.
func (c *checker) login(ctx context.Context) bool {
	a := c.p.Definition.Cluster.Spec.Azure
	doc, err := c.Azure.Get(ctx, c.subscription())
	if err != nil {
		c.loginFailed(err)
		return false
	}
	var s struct {
		State    string `json:"state"`
		TenantID string `json:"tenantId"`
	}
	if err := json.Unmarshal(doc, &s); err != nil {
		c.Add("login", "check the endpoint of Azure Resource Manager", "the answer about subscription %s cannot be read: %v",
			a.SubscriptionID, err)
		return false
	}
	if s.TenantID != "" && !strings.EqualFold(s.TenantID, a.TenantID) {
		c.Add("login", "set spec.azure.tenantID to the tenant of the subscription",
			"subscription %s is of tenant %s, and spec.azure.tenantID is %s",
			a.SubscriptionID, s.TenantID, a.TenantID)
	}
	if s.State != "" && s.State != "Enabled" && s.State != "Warned" {
		c.Add("login", "enable the subscription, or choose another one", "subscription %s is %s", a.SubscriptionID, s.State)
	}
	return true
}

// loginFailed says what is wrong with the credential.
func (c *checker) loginFailed(err error) {
	id := c.p.Definition.Cluster.Spec.Azure.SubscriptionID
	text := err.Error()
	for _, known := range []struct{ code, message, remedy string }{
		{"AADSTS7000215", "the client secret is wrong", "set AZURE_CLIENT_SECRET to the value of the secret, and not to its id"},
		{"AADSTS7000222", "the client secret is expired", "make a new secret for the application"},
		{"AADSTS700016", "the application is not in the tenant", "check AZURE_CLIENT_ID and AZURE_TENANT_ID"},
		{"AADSTS90002", "the tenant does not exist", "check AZURE_TENANT_ID"},
		{"AADSTS700027", "the client certificate is wrong", "register the certificate with the application"},
		{"AADSTS70021", "no federated credential fits to the token", "check issuer, subject and audience of the federated credential"},
	} {
		if strings.Contains(text, known.code) {
			c.Add("login", known.remedy, "%s (%s)", known.message, known.code)
			return
		}
	}
	code := ""
	if fault, ok := errors.AsType[*azure.Error](err); ok {
		code = fault.Code
	}
	switch {
	case code == "SubscriptionNotFound" || azure.IsNotFound(err):
		c.Add("login", "check spec.azure.subscriptionID, and that the caller has a role in the subscription",
			"the caller does not see subscription %s", id)
	case code == "InvalidAuthenticationTokenTenant":
		c.Add("login", "log in to the tenant of the subscription", "the credential is of another tenant than subscription %s", id)
	case code == "ExpiredAuthenticationToken":
		c.Add("login", "log in again", "the token is expired")
	case code == "AuthorizationFailed":
		c.Add("login", "ask an owner for the role Contributor", "the caller has no role in subscription %s", id)
	default:
		c.Add("login", "log in with az login, or set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
			"subscription %s cannot be read: %v", id, err)
	}
}

// group checks that the resource group fits to its lifecycle.
func (c *checker) group() {
	g := c.p.Definition.Cluster.Spec.Azure.ResourceGroup
	owner := c.state.Tags["kaz_cluster"]
	switch {
	case g.Lifecycle == "Existing" && c.state.Group == nil:
		c.Add("resource group", "make it, or set spec.azure.resourceGroup.lifecycle to Owned", "resource group %s does not exist", g.Name)
	case g.Lifecycle == "Owned" && c.state.Group != nil && owner != c.p.Names.Cluster:
		c.Add("resource group", "choose another name, or set spec.azure.resourceGroup.lifecycle to Existing",
			"resource group %s exists and kaz did not make it for cluster %s", g.Name, c.p.Names.Cluster)
	}
}

// rights checks that the caller may write what the template has, and may use what that refers to.
func (c *checker) rights(ctx context.Context) {
	scope := c.subscription()
	if c.state.Group != nil {
		scope = *c.state.Group
	}
	granted, err := permissionsAt(ctx, c.Azure, scope)
	if err != nil {
		c.unread("rights", err)
		return
	}
	needed := map[string]bool{record.DeploymentType + "/write": true, record.DeploymentType + "/validate/action": true,
		record.SpecType + "/write": true, record.SpecType + "/versions/write": true}
	if c.state.Group == nil {
		needed["Microsoft.Resources/subscriptions/resourceGroups/write"] = true
	}
	for _, u := range c.p.Graph.Units {
		for _, r := range u.Resources {
			needed[r.Type+"/write"] = true
		}
	}
	maps.Copy(needed, c.linked())
	var missing []string
	for _, action := range slices.Sorted(maps.Keys(needed)) {
		if !rights.Allowed(granted, action) {
			missing = append(missing, action)
		}
	}
	if len(missing) == 0 {
		return
	}
	remedy := "ask an owner for the role Contributor at " + string(scope)
	if slices.Contains(missing, "Microsoft.Authorization/roleAssignments/write") {
		remedy += ", and for User Access Administrator, or set spec.identity.roles to None and assign the roles yourself"
	}
	c.Add("rights", remedy, "the caller may not: %s", strings.Join(missing, ", "))
}

// permissionsAt are what the caller may do at a scope.
func permissionsAt(ctx context.Context, from azure.Reader, scope azure.ID) ([]rights.Permission, error) {
	docs, err := from.List(ctx, azure.Query{Scope: scope, Type: "Microsoft.Authorization/permissions"})
	if err != nil {
		return nil, err
	}
	var granted []rights.Permission
	for _, doc := range docs {
		var p rights.Permission
		if err := json.Unmarshal(doc, &p); err != nil {
			return nil, err
		}
		granted = append(granted, p)
	}
	return granted, nil
}

// providers checks that the resource providers are registered. The ARM client registers them when a write needs it.
func (c *checker) providers(ctx context.Context) {
	namespaces := map[string]bool{}
	for _, u := range c.p.Graph.Units {
		for _, r := range u.Resources {
			namespace, _, _ := strings.Cut(r.Type, "/")
			namespaces[namespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		doc, err := c.Azure.Get(ctx, c.subscription()+azure.ID("/providers/"+namespace))
		if err != nil {
			c.unread("resource providers", err)
			continue
		}
		var p struct {
			RegistrationState string `json:"registrationState"`
		}
		if json.Unmarshal(doc, &p) == nil && p.RegistrationState == "NotRegistered" {
			c.Add("resource providers", "az provider register --namespace "+namespace, "%s is not registered in the subscription",
				namespace)
		}
	}
}

func (c *checker) location(ctx context.Context) bool {
	want := c.p.Definition.Cluster.Spec.Azure.Location
	docs, err := c.Azure.List(ctx, azure.Query{Scope: c.subscription(), Type: "Microsoft.Resources/subscriptions/locations"})
	if err != nil {
		c.unread("location", err)
		return true
	}
	var names []string
	for _, doc := range docs {
		var l struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(doc, &l) == nil {
			names = append(names, l.Name)
		}
	}
	if slices.Contains(names, want) {
		return true
	}
	slices.Sort(names)
	c.Add("location", "choose one of "+strings.Join(names, ", "), "the subscription has no location %s", want)
	return false
}

// globalNames checks that global names are free or ours.
func (c *checker) globalNames(ctx context.Context) {
	for _, unit := range []struct{ unit, symbol, provider, field string }{
		{"storage", "account", "Microsoft.Storage", "spec.storage.id"}, {"vault", "vault", "Microsoft.KeyVault", "spec.keyVault.id"},
	} {
		r, u := c.resource(unit.unit, unit.symbol)
		if r == nil {
			continue
		}
		if c.state.Has(emit.ID(c.p.Names, r, u)) {
			continue
		}
		body, err := json.Marshal(map[string]string{"name": r.Name, "type": r.Type})
		if err != nil {
			c.unread("names", err)
			continue
		}
		doc, err := azure.Do(ctx, c.Azure, azure.Request{
			Verb: azure.Post, ID: c.subscription() + azure.ID("/providers/"+unit.provider), Action: "checkNameAvailability", Body: body,
		})
		if err != nil {
			c.unread("names", err)
			continue
		}
		var answer struct {
			Available *bool  `json:"nameAvailable"`
			Message   string `json:"message"`
		}
		if json.Unmarshal(doc, &answer) == nil && answer.Available != nil && !*answer.Available {
			c.Add("names", "purge what was deleted, choose another name of the cluster, or give an existing one in "+unit.field,
				"%s %s: %s", r.Type, r.Name, answer.Message)
		}
	}
}

// publicName checks that the public name of the API server is free or ours.
func (c *checker) publicName(ctx context.Context) {
	n := c.p.Names
	if !n.Public() || c.state.Has(n.Group().Resource(network.PublicIPAddresses, n.APIAddress())) {
		return
	}
	location := c.p.Definition.Cluster.Spec.Azure.Location
	doc, err := azure.Do(ctx, c.Azure, azure.Request{
		Verb: azure.Get, ID: c.subscription() + azure.ID("/providers/Microsoft.Network/locations/"+location+"/CheckDnsNameAvailability"),
		Parameters: map[string]string{"domainNameLabel": c.p.Names.DNSLabel()},
	})
	if err != nil {
		c.unread("names", err)
		return
	}
	var answer struct {
		Available *bool `json:"available"`
	}
	if json.Unmarshal(doc, &answer) == nil && answer.Available != nil && !*answer.Available {
		c.Add("names", "choose another name in spec.network.apiServer.dnsLabel", "the public name %s is taken in %s", c.p.Names.DNSLabel(),
			location)
	}
}

// outbound checks that machines find the programs of Kubernetes without the internet, and what they need of Azure.
func (c *checker) outbound() {
	s := c.p.Definition.Cluster.Spec
	const public = fields.OfficialArtifacts
	if s.Network.Outbound.Type != "None" {
		return
	}
	if s.Network.Subnets.Nodes.ID == "" {
		c.Warn("outbound", "give them private endpoints in the virtual network, for example as resources of an Extension",
			"spec.network.outbound.type is None, so machines do not reach the public addresses of Azure Resource Manager, the key vault "+
				"and the storage account")
		if s.Network.APIServer.Access == "Public" {
			c.Add("outbound", "set spec.network.apiServer.access to PublicAndInternal or Internal",
				"spec.network.outbound.type is None, so machines do not reach the API server at its public address")
		}
	}
	complete := s.ControlPlane.Image.ID != ""
	for _, pool := range c.p.Definition.Pools {
		complete = complete && pool.Spec.Image.ID != ""
	}
	if !complete && s.Kubernetes.ArtifactMirror == public { // an image of the marketplace has no programs of Kubernetes
		c.Add("outbound", "set spec.kubernetes.artifactMirror to a mirror in the network, or give images with the programs of Kubernetes",
			"spec.network.outbound.type is None, so machines do not reach %s, where spec.kubernetes.artifactMirror is", public)
	}
	if !complete && s.Kubernetes.ArtifactMirror != public && !s.Kubernetes.Pinned() {
		c.Warn("outbound", "give the checksums of version "+s.Kubernetes.Version+" in spec.kubernetes.artifactChecksums",
			"spec.network.outbound.type is None, so machines do not reach %s for checksums, and the mirror vouches for its own programs",
			public)
	}
}

// artifacts warns of checksums that are not those of the programs that the project of Kubernetes publishes.
func (c *checker) artifacts() {
	k := c.p.Definition.Cluster.Spec.Kubernetes
	for _, path := range k.DifferentChecksums() {
		c.Warn("checksums", "remove the checksum from spec.kubernetes.artifactChecksums, unless the mirror has builds of your own",
			"spec.kubernetes.artifactChecksums has another checksum of %s than the one that the project of Kubernetes publishes", path)
	}
}

// registries warns of pools if their nodes may pull from registries, and may lack the program that uses this right.
func (c *checker) registries() {
	d := c.p.Definition
	if len(d.Cluster.Spec.Identity.RegistryIDs) == 0 {
		return
	}
	for _, pool := range d.Pools {
		brings := slices.ContainsFunc(d.Extensions, func(e definition.Extension) bool {
			return e.Spec.AppliesTo.Has(pool.Metadata.Name) && slices.ContainsFunc(e.Spec.Files, func(f definition.File) bool {
				return path.Base(f.Path) == registry.Program
			})
		})
		if !brings {
			c.Warn("registries", "bring "+registry.Program+" to the nodes with the files of an Extension, if their image does not have it",
				"spec.identity.registryIDs gives nodes the right to pull, and no Extension brings pool %s the program that pulls with it",
				pool.Metadata.Name)
		}
	}
}

func (c *checker) locks(ctx context.Context) {
	if c.state.Group == nil {
		return
	}
	docs, err := c.Azure.List(ctx, azure.Query{Scope: *c.state.Group, Type: "Microsoft.Authorization/locks"})
	if err != nil {
		c.unread("locks", err)
		return
	}
	for _, doc := range docs {
		var l struct {
			Name       string `json:"name"`
			Properties struct {
				Level string `json:"level"`
			} `json:"properties"`
		}
		if json.Unmarshal(doc, &l) != nil {
			continue
		}
		switch l.Properties.Level {
		case "ReadOnly":
			c.Add("locks", "remove the lock", "the lock %s forbids changes in the resource group", l.Name)
		case "CanNotDelete":
			c.Warn("locks", "remove the lock before machines are replaced, or pools shrink",
				"the lock %s forbids deletions in the resource group", l.Name)
		}
	}
}

// validate lets Azure check the whole template, which also applies policies.
func (c *checker) validate(ctx context.Context) {
	switch err := c.Validate(ctx, c.p, c.state); {
	case errors.Is(err, deploy.ErrFixed):
		c.Add("definition", "see kaz cluster explain for what a change of a field does", "%v", err)
	case err != nil:
		c.Add("validation", "correct the definition, or ask the owner of the policy", "Azure refuses the template: %v", err)
	}
}
