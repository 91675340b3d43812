//! A plan tried on a copy of the graph, in the native engine.

use anyhow::{Context, Result};
use tierce_plan::{Cpus, Edge, Host, Ids, Leaving, Members, Plan};
use tierce_policy::{Control, Graph, NodeParams, Params, Refusal, Way, TASK};

/// The graph of a plan and its threads' leaves in the native engine: what it refuses is what the kernel side would refuse.
pub struct Trial {
    /// The graph; all at time 0.
    pub graph: Graph,
    /// Members: set, leaf, edges in the order of the set.
    pub members: Vec<(String, u32, Vec<u32>)>,
    /// Leaves of the default node.
    pub defaults: Vec<u32>,
    default: (u32, Params),
}

impl Trial {
    /// The graph of the plan, no threads yet.
    pub fn new(plan: &Plan) -> Result<(Trial, Ids)> {
        let mut graph = Graph::new(plan.machine.cpus, 0)?;
        let ids = plan.build(&mut graph.at(0), Members::Live)?;
        let node = plan.default_node.context("the plan has no default node")?;
        let default = (ids.nodes[node], plan.default_params().0);
        Ok((Trial { graph, members: Vec::new(), defaults: Vec::new(), default }, ids))
    }

    fn leaf(&mut self, allowed: Cpus, under: &[(u32, Params, i32, Way)]) -> Result<(u32, Vec<u32>), Refusal> {
        let leaf = self.node_new(TASK, 1, allowed, Default::default())?;
        let mut edges = Vec::new();
        for &(parent, params, rank, way) in under {
            edges.push(self.graph.attach(parent, leaf, params, rank, way, 0)?);
        }
        Ok((leaf, edges))
    }

    /// A thread that matches a set, with these of its edges.
    pub fn member(
        &mut self,
        plan: &Plan,
        ids: &Ids,
        set: usize,
        way: &[Edge],
        allowed: Cpus,
    ) -> Result<(), Refusal> {
        let under: Vec<_> =
            way.iter().map(|edge| (ids.nodes[edge.parent], edge.params, edge.rank, edge.way())).collect();
        let (leaf, edges) = self.leaf(allowed, &under)?;
        self.members.push((plan.sets[set].name.clone(), leaf, edges));
        Ok(())
    }

    /// A thread that matches nothing.
    pub fn unmatched(&mut self, allowed: Cpus) -> Result<(), Refusal> {
        let (node, params) = self.default;
        let way = if self.graph.node(node).family == 0 { Way::Plain } else { Way::Spread };
        let (leaf, _) = self.leaf(allowed, &[(node, params, 0, way)])?;
        self.defaults.push(leaf);
        Ok(())
    }

    /// One leaf less; how the thread behaves meanwhile is up to the caller.
    fn drop_leaf(&mut self, leaf: u32) -> Result<(), Refusal> {
        loop {
            match self.graph.node(leaf).first_parent {
                0 => return self.node_free(leaf),
                edge => self.detach(edge)?,
            }
        }
    }
}

impl Control for Trial {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal> {
        self.graph.at(0).node_new(kind, concurrency, allowed, params)
    }
    fn node_set(&mut self, node: u32, params: NodeParams) -> Result<(), Refusal> {
        self.graph.at(0).node_set(node, params)
    }
    fn node_free(&mut self, node: u32) -> Result<(), Refusal> {
        self.graph.at(0).node_free(node)
    }
    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal> {
        self.graph.at(0).root(cpu, node)
    }
    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal> {
        self.graph.at(0).replica(node, first)
    }
    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        self.graph.at(0).edge_new(parent, child, rank, way)
    }
    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        self.graph.at(0).attach(edge, params)
    }
    fn set(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        Control::set(&mut self.graph.at(0), edge, params)
    }
    fn detach(&mut self, edge: u32) -> Result<(), Refusal> {
        Control::detach(&mut self.graph.at(0), edge)
    }
}

impl Host for Trial {
    fn control(&mut self) -> &mut dyn Control {
        self
    }

    fn appear(&mut self, _plan: &Plan, _ids: &Ids, _before: &Ids) -> Result<(), Refusal> {
        Ok(())
    }
    fn vanish(&mut self, _ids: &[u32]) -> Result<(), Refusal> {
        Ok(())
    }
    fn set_default(&mut self, node: u32, params: Params, _nice: Option<usize>) -> Result<(), Refusal> {
        self.default = (node, params);
        Ok(())
    }
    fn set_members(&mut self, set: &str, number: usize, params: Params) -> Result<(), Refusal> {
        let edges: Vec<u32> =
            self.members.iter().filter(|(name, ..)| name == set).map(|(_, _, edges)| edges[number]).collect();
        edges.into_iter().try_for_each(|edge| Control::set(self, edge, params))
    }
    fn evacuate(&mut self, leaving: &Leaving) -> Result<(), Refusal> {
        let (go, stay) = std::mem::take(&mut self.members)
            .into_iter()
            .partition(|(set, ..)| leaving.sets.contains(&&set[..]));
        self.members = stay;
        let mut moved: Vec<u32> =
            Vec::from_iter(go).into_iter().map(|(_, leaf, _): (String, _, Vec<u32>)| leaf).collect();
        if leaving.default {
            moved.append(&mut self.defaults);
        }
        for leaf in moved {
            let allowed = self.graph.allowed(leaf);
            self.drop_leaf(leaf)?;
            // What the default node has no room for runs beside the graph.
            if let Err(Refusal::Call(why)) = self.unmatched(allowed) {
                return Err(Refusal::Call(why));
            }
        }
        Ok(())
    }
    fn wait(&mut self) -> Result<(), Refusal> {
        Err(Refusal::Call("nothing runs here".into()))
    }
}
