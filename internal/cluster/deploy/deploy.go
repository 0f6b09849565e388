// Package deploy brings Azure to the plan of a cluster: it compares the plan with what is there, makes absent secrets, and
// writes one deployment. Layer L3.
package deploy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/forecast"
	"kaz/internal/cluster/lint"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/units"
	"kaz/internal/pause"
)

// Result is what a deployment did.
type Result struct {
	// Unchanged says that nothing had to be written.
	Unchanged bool
	// Units are the units that were deployed.
	Units []string
	// Kubeconfig is the kubeconfig of the first administrator; only the first deployment has one.
	Kubeconfig []byte
}

// ErrFixed is in the chain of an error about changes that a deployment cannot make.
var ErrFixed = errors.New("the definition changes what a deployment cannot change")

// ErrRunning is in the chain of an error about a deployment that runs.
var ErrRunning = errors.New("a deployment runs")

// activeDeployment is Azure's code for a deployment that runs and therefore cannot be replaced.
const activeDeployment = "DeploymentActive"

// work is what a deployment is going to write.
type work struct {
	plan     cluster.Plan
	state    record.State
	template emit.Template
	seed     seed
	left     int
	// leave are the units that are not deployed.
	leave map[string]bool
	// existing is what is done with resources that exist.
	existing existing
	// recorded says that Azure records the definition.
	recorded bool
}

// prepare compares a plan with Azure. replaced says that a change has replaced the machines, so that fields may differ that a
// deployment cannot change.
func (d Deployer) prepare(ctx context.Context, p cluster.Plan, replaced bool) (work, error) {
	state, err := d.Read(ctx, p.Names, p.Groups()...)
	if err != nil {
		return work{}, err
	}
	w, err := left(state, p, replaced)
	if err != nil {
		return w, err
	}
	if err := confirm(ctx, d.Store, w.plan, state); err != nil {
		return w, err
	}
	if w, err = left(state, p, replaced); err != nil || w.empty() {
		return w, err
	}
	if w.seed, err = absentSecrets(ctx, d.Store, w.plan, state, w.leave["vault"]); err != nil {
		return w, err
	}
	w.leave["vault"] = w.leave["vault"] && w.seed.empty()
	return w, d.fit(ctx, &w)
}

// fit leaves out of the template what need not be written.
func (d Deployer) fit(ctx context.Context, w *work) error {
	x, err := d.compare(ctx, w.plan, w.state, w.leave)
	if err != nil {
		return err
	}
	w.existing = x
	w.template = w.plan.Template(x.written(w.leave))
	return nil
}

// Look reads what there is of a plan, and reports whether nothing is left to deploy.
func (d Deployer) Look(ctx context.Context, p cluster.Plan) (state record.State, complete bool, err error) {
	if state, err = d.Read(ctx, p.Names, p.Groups()...); err != nil {
		return state, false, err
	}
	w, err := left(state, p, false)
	return state, err == nil && w.empty(), nil // a deployment says why it is refused
}

// left is what is left to deploy of a plan.
func left(s record.State, p cluster.Plan, replaced bool) (work, error) {
	if s.Definition != nil && !replaced {
		p.Definition.Authorities, p.Definition.Encrypted = s.Definition.Authorities, s.Definition.Encrypted // no file says it
	}
	p, err := cluster.WithMembers(p.Definition, s.Generations())
	if err != nil {
		return work{}, err
	}
	w := work{plan: p, state: s}
	if err := allowed(s, p.Definition); err != nil && !replaced {
		return w, err
	}
	w.leave = map[string]bool{}
	for unit, hash := range p.Template(emit.Options{}).Hashes {
		if done(s, p, unit, hash) {
			w.leave[unit] = true
		}
	}
	w.left = len(w.leave)
	w.recorded = s.Definition != nil && record.SameText(*s.Definition, p.Definition)
	w.template = p.Template(emit.Options{Leave: w.leave, Keep: once(s, p)})
	return w, nil
}

// once are the listed resources of a plan that are written only once, by their ids in lower case.
func once(s record.State, p cluster.Plan) map[string]bool {
	all := map[string]bool{}
	for _, u := range p.Graph.Units {
		for _, r := range u.Resources {
			if id := emit.ID(p.Names, r.Resource, u.Unit); r.Once && s.Has(id) {
				all[id.Key()] = true
			}
		}
	}
	return all
}

// allowed refuses changes that need machines to be replaced, or a new cluster.
func allowed(s record.State, d definition.Definition) error {
	if s.Definition == nil {
		return nil
	}
	if err := Fixed(*s.Definition, d); err != nil {
		return err
	}
	var replaced []string
	for _, difference := range definition.Compare(*s.Definition, d) {
		if difference.Change != fields.Live {
			replaced = append(replaced, difference.String())
		}
	}
	if len(replaced) == 0 {
		replaced = revised(*s.Definition, d)
	}
	if len(replaced) > 0 {
		return fmt.Errorf("%w, and kaz cluster upgrade can:\n%s", ErrFixed, strings.Join(replaced, "\n"))
	}
	return nil
}

// revised are changes of extensions that are more than resources of Azure.
func revised(old, now definition.Definition) []string {
	var all []string
	if !slices.Equal(boot.Manifests(old), boot.Manifests(now)) {
		all = append(all, "manifests of extensions change")
	}
	if definition.Revision(old, "") != definition.Revision(now, "") {
		all = append(all, "the control plane gets other files or commands of extensions")
	}
	for _, p := range old.Pools {
		has := slices.ContainsFunc(now.Pools, func(other definition.NodePool) bool { return other.Metadata.Name == p.Metadata.Name })
		if has && definition.Revision(old, p.Metadata.Name) != definition.Revision(now, p.Metadata.Name) {
			all = append(all, fmt.Sprintf("pool %s gets other files or commands of extensions", p.Metadata.Name))
		}
	}
	return all
}

func (w work) empty() bool { return len(w.template.Units) == 0 && w.recorded }

// body is the body of the deployment. secrets are empty unless they are written.
func (w work) body(secrets map[string]string) (azure.Document, error) {
	given := map[string]any{}
	declared, _ := w.template.Main["parameters"].(map[string]any)
	for name := range declared {
		switch name {
		case units.SeedSecrets:
			given[name] = map[string]any{"value": len(secrets) > 0}
		case emit.DefinitionParameter:
		default:
			if value, has := secrets[name]; has {
				given[name] = map[string]any{"value": value}
			}
		}
	}
	return json.Marshal(map[string]any{"properties": map[string]any{
		"mode": "Incremental", "template": w.template.Main, "parameters": given,
	}})
}

// Preview shows what a deployment would do without asking Azure to compare: the units that it would deploy.
func (d Deployer) Preview(ctx context.Context, p cluster.Plan) ([]string, error) {
	w, err := d.prepare(ctx, p, false)
	return slices.Sorted(maps.Keys(w.template.Units)), err
}

// Deploy deploys what Azure lacks of the plan. It passes save the kubeconfig of a new cluster before the deployment begins.
// The key of the certificate authority is known only then.
func (d Deployer) Deploy(ctx context.Context, p cluster.Plan, save func(kubeconfig []byte) error) (Result, error) {
	return d.deploy(ctx, p, save, false)
}

// Redeploy deploys and records what Azure lacks of the plan, after a change has replaced the machines.
func (d Deployer) Redeploy(ctx context.Context, p cluster.Plan) error {
	_, err := d.deploy(ctx, p, nil, true)
	return err
}

func (d Deployer) deploy(ctx context.Context, p cluster.Plan, save func([]byte) error, replaced bool) (Result, error) {
	w, err := d.prepare(ctx, p, replaced)
	if err != nil {
		return Result{}, err
	}
	if m := w.state.Main; m.Running() {
		return Result{}, fmt.Errorf("%w: that of %s, since %s: wait for it, or end it with kaz cluster abort", ErrRunning,
			p.Names.Cluster, m.Properties.Timestamp)
	}
	if open, err := d.Open(ctx, p.Names); err != nil || open != nil && !replaced {
		return Result{}, cmp.Or(err, record.ErrOpen)
	}
	d.sayOrphans(w)
	result := Result{Units: slices.Sorted(maps.Keys(w.template.Units))}
	if w.empty() {
		result.Unchanged = true
		return result, errors.Join(d.keepDefinition(ctx, w, true), d.scale(ctx, w, &result))
	}
	secrets, err := d.newSecrets(ctx, w, save, &result)
	if err != nil {
		return result, err
	}
	if err := clean(w, secrets); err != nil {
		return result, err
	}
	if err := d.write(ctx, w, secrets); err != nil {
		return result, err
	}
	if !replaced {
		d.sayCharts(p.Definition.Rendered)
	}
	return result, d.scale(ctx, w, &result)
}

// write writes what is left to deploy. Azure keeps the definition from the begin of the deployment on.
func (d Deployer) write(ctx context.Context, w work, secrets map[string]string) error {
	if err := d.makeGroup(ctx, w); err != nil {
		return err
	}
	if w.state.Kept.Definition == nil {
		if err := d.MakeSpec(ctx, w.plan.Names, w.plan.Definition.Cluster); err != nil {
			return err
		}
	}
	begun := func() error { return d.keepDefinition(ctx, w, false) }
	if len(w.existing.merges) > 0 { // what they write is known as kaz's own, even if the next step fails
		if err := begun(); err != nil {
			return err
		}
		begun = func() error { return nil }
	}
	if err := d.change(ctx, w.existing); err != nil {
		return err
	}
	if err := d.run(ctx, w, secrets, begun); err != nil {
		return err
	}
	return d.keepDefinition(ctx, w, true)
}

// newSecrets makes the secrets that the key vault lacks, and passes save the kubeconfig of a new certificate authority.
func (d Deployer) newSecrets(ctx context.Context, w work, save func([]byte) error, result *Result) (map[string]string, error) {
	if w.seed.empty() {
		return nil, nil
	}
	secrets, kubeconfig, err := d.secrets(ctx, w.plan, w.seed)
	if err != nil {
		return nil, err
	}
	if len(w.seed.kept) > 0 {
		d.Sayf("key vault %s has %s already: they stay", w.plan.Names.Vault(), strings.Join(w.seed.kept, ", "))
	}
	if kubeconfig == nil {
		d.Sayf("the certificate authority exists: kaz cluster kubeconfig %s makes a kubeconfig", w.plan.Names.Cluster)
		return secrets, nil
	}
	result.Kubeconfig = kubeconfig
	if err := save(kubeconfig); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return secrets, nil
}

// Deployer carries out deployments.
type Deployer struct {
	record.Store
	// Say gets a line for each event, for people.
	Say func(line string)
	// Poll is the time between two looks at a running deployment, by default 5 s.
	Poll time.Duration
	// Now is the time, by default that of the machine.
	Now func() time.Time
	// Planes are the data planes of Azure.
	Planes dataplane.Client
}

// Sayf says a line for people.
func (d Deployer) Sayf(format string, args ...any) {
	if d.Say != nil {
		d.Say(fmt.Sprintf(format, args...))
	}
}

// Every is the time between two looks at a deployment.
func (d Deployer) Every() time.Duration { return cmp.Or(d.Poll, 5*time.Second) }

// Clock is the time.
func (d Deployer) Clock() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

// sayCharts names the releases that the first member does not apply.
func (d Deployer) sayCharts(all []definition.Rendered) {
	for _, r := range all {
		if !r.AtBoot {
			d.Sayf("Extension %s: release %s is not applied at boot: kaz cluster upgrade applies it", r.Extension, r.Release)
		}
	}
}

// sayOrphans names units that were deployed and are no longer in the definition.
func (d Deployer) sayOrphans(w work) {
	for _, unit := range slices.Sorted(maps.Keys(w.state.Units)) {
		if w.plan.Graph.Unit(unit) == nil {
			d.Sayf("unit %s is in Azure and not in the definition: it stays, and kaz cluster upgrade removes pools", unit)
		}
	}
}

// clean refuses to send a template with a secret in it: secrets go as parameters only.
func clean(w work, secrets map[string]string) error {
	raw := map[string][]byte{}
	for name, text := range secrets {
		raw[name] = []byte(text)
	}
	if found := lint.Secrets(map[string][]byte{"the template": emit.JSON(w.template.Main)}, raw); len(found) > 0 {
		return errors.New(strings.Join(found, "\n"))
	}
	return nil
}

// Server is the URL of a cluster's API server for people: the public one, if there is one.
func Server(p cluster.Plan) string {
	host := p.Names.PublicHost()
	if host == "" {
		host = p.Names.InternalHost()
	}
	return fmt.Sprintf("https://%s:%d", host, p.Definition.Cluster.Spec.Network.APIServer.Port)
}

// makeGroup makes the resource group of a new cluster.
func (d Deployer) makeGroup(ctx context.Context, w work) error {
	if w.state.Group != nil {
		return nil
	}
	a := w.plan.Definition.Cluster.Spec.Azure
	body, err := json.Marshal(map[string]any{"location": a.Location, "tags": w.plan.GroupTags()})
	if err != nil {
		return err
	}
	d.Sayf("create resource group %s", a.ResourceGroup.Name)
	_, err = azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Put, ID: w.plan.Names.Group(), Body: body})
	return err
}

// run deploys and shows the progress of the units. It calls begun as soon as Azure has taken the deployment.
func (d Deployer) run(ctx context.Context, w work, secrets map[string]string, begun func() error) error {
	body, err := w.body(secrets)
	if err != nil {
		return err
	}
	id := record.DeploymentID(w.plan.Names.Group(), w.plan.Names.Deployment())
	d.Sayf("deploy %d units, %d unchanged: %s", len(w.template.Units), w.left, id.Name())
	op, err := d.Azure.Begin(ctx, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true})
	if fault, ok := errors.AsType[*azure.Error](err); ok && fault.Code == activeDeployment {
		return fmt.Errorf("%w: another one of %s began at the same time: wait for it, or end it with kaz cluster abort", ErrRunning,
			w.plan.Names.Cluster)
	}
	if err != nil {
		return failure.Of(ctx, d.Azure, id, err)
	}
	watching, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.watch(watching, w, id)
	}()
	kept := begun()
	_, err = op.Wait(ctx)
	stop()
	<-ended
	if err != nil {
		return errors.Join(failure.Of(ctx, d.Azure, id, err), kept)
	}
	return kept
}

// watch says when units begin and end, and how many of all have ended, until ctx is done.
func (d Deployer) watch(ctx context.Context, w work, id azure.ID) {
	said, all := map[string]string{}, forecast.Deployment{Units: w.units(), Began: d.Clock()}
	for {
		if pause.For(ctx, d.Every()) != nil {
			return
		}
		operations, err := failure.Operations(ctx, d.Azure, id)
		if err != nil {
			continue // the deployment goes on, and its end is read elsewhere
		}
		for _, o := range operations {
			unit := strings.TrimPrefix(o.Properties.Target.ID.Name(), w.plan.Names.Cluster+"-")
			state := o.Properties.State
			if unit == "" || said[unit] == state {
				continue
			}
			said[unit] = state
			d.Sayf("  %-24s %s%s", unit, strings.ToLower(state), all.Saw(unit, state, d.Clock()))
		}
	}
}

// units are those that are deployed. How long each took the last time is known from Azure's record of it.
func (w work) units() (all []forecast.Unit) {
	for _, u := range forecast.Of(w.plan.Graph) {
		if _, deployed := w.template.Units[u.Name]; deployed {
			if last, known := w.state.Units[u.Name]; known {
				u.Took = last.Took()
			}
			all = append(all, u)
		}
	}
	return all
}

// Abort cancels the running deployment of a cluster and forgets a change that has not ended. What was done stays.
func (d Deployer) Abort(ctx context.Context, n naming.Names) error {
	open, err := d.Open(ctx, n)
	if err != nil {
		return err
	}
	if open != nil {
		state, err := d.Read(ctx, n)
		if err != nil {
			return err
		}
		if err := d.releaseAll(ctx, state, *open); err != nil {
			return err
		}
		if err := d.Close(ctx, n); err != nil || !state.Main.Running() {
			return err
		}
	}
	_, err = azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Post, ID: record.DeploymentID(n.Group(), n.Deployment()), Action: "cancel"})
	return err
}

// created are all resources of a plan before its resource group exists.
func (w work) created() []Change {
	all := []Change{{ID: w.plan.Names.Group(), Type: "Create"}}
	for _, u := range w.plan.Graph.Units {
		for _, r := range u.Resources {
			all = append(all, Change{ID: emit.ID(w.plan.Names, r.Resource, u.Unit), Type: "Create"})
		}
	}
	return all
}

// keepDefinition keeps the definition of a deployment that has begun, or is complete.
func (d Deployer) keepDefinition(ctx context.Context, w work, complete bool) error {
	deployed := w.plan.Definition
	now := record.Definitions{Definition: &deployed, Deployed: w.state.Kept.Deployed}
	if complete {
		now.Deployed = &deployed
	}
	if record.SameText(now, w.state.Kept) {
		return nil
	}
	if err := d.Keep(ctx, w.plan.Names, deployed.Cluster, record.DefinitionVersion, now); err != nil {
		return fmt.Errorf("record of the definition: %w", err)
	}
	return nil
}

// DeployUnit deploys one unit of a plan. The deployment records the previous definition, because the change has not ended.
func (d Deployer) DeployUnit(ctx context.Context, p cluster.Plan, unit string) error {
	state, err := d.Read(ctx, p.Names)
	if err != nil {
		return err
	}
	leave := map[string]bool{}
	for _, u := range p.Graph.Units {
		leave[u.Name] = u.Name != unit
	}
	x, err := d.compare(ctx, p, state, leave)
	if err != nil {
		return err
	}
	if err := d.change(ctx, x); err != nil {
		return err
	}
	o := x.written(leave)
	o.Definition = state.Definition
	return d.run(ctx, work{plan: p, state: state, template: p.Template(o), left: len(p.Graph.Units) - 1}, nil,
		func() error { return nil })
}

// Fixed refuses changed fields that no change of machines can bring into effect.
func Fixed(old, now definition.Definition) error {
	var refused []string
	for _, d := range definition.Compare(old, now) {
		if d.Change == fields.Fixed {
			refused = append(refused, d.String())
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("%w: make a new pool or cluster, or take the change back:\n%s", ErrFixed, strings.Join(refused, "\n"))
}

type object = map[string]any
