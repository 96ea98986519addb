// The plan: what the session claims, what people expect, and the evidence that each stands on.

import { useState, type ReactNode } from "react";

import { Link, trialAddress } from "../app/router";
import type { Claim, Idea, SessionPicture } from "../api/types";
import { figure } from "../ui/numbers";
import { Chip, Panel, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import { Difference, reachOf } from "./Difference";

interface Tree {
  picture: SessionPicture;
  reach: number;
  /** Claims about a person's idea hang on the idea. */
  ideas: Map<string, Idea>;
}

export function PlanTree({ picture }: { picture: SessionPicture }) {
  const [root] = picture.claims;
  const hanging = picture.ideas.filter((idea) => !picture.claims.some((one) => one.hypothesis_id === idea.hypothesis_id));
  const tree: Tree = {
    picture,
    reach: reachOf(picture.claims),
    ideas: new Map(picture.ideas.flatMap((idea) => (idea.hypothesis_id ? [[idea.hypothesis_id, idea] as const] : []))),
  };
  const left = picture.n_claims - picture.claims.length;
  return (
    <Panel title="Plan" aside={<PlanState picture={picture} />}>
      {root ? (
        <ul className="tree">
          <Branch claim={root} tree={tree} isOpen>
            {hanging.map((idea) => (
              <li key={idea.steering_id}>
                <IdeaLine idea={idea} />
              </li>
            ))}
          </Branch>
        </ul>
      ) : (
        <p className="quiet">
          {picture.session.plan_revision > 0
            ? "The plan was written by a newer nightlab: update this one to see it."
            : "No plan yet: the session writes it when its process starts."}
        </p>
      )}
      {picture.search_closed && (
        <p className="quiet small">
          The search is closed: <Words text={picture.search_closed} />
        </p>
      )}
      {left > 0 && <p className="quiet small">{left} earlier claims are not shown.</p>}
    </Panel>
  );
}

function PlanState({ picture }: { picture: SessionPicture }) {
  const { error_budget: budget, error_spent: spent } = picture;
  return (
    <span className="row small quiet">
      {budget !== null && (
        <span title="Chance at most that the session accepts any false claim, and what its claims hold of it">
          error budget {figure(100 * spent)} of {figure(100 * budget)} %
        </span>
      )}
      <span>{picture.looks}</span>
    </span>
  );
}

function Branch({ claim, tree, isOpen, children }: { claim: Claim; tree: Tree; isOpen?: boolean; children?: ReactNode }) {
  const below = tree.picture.claims.filter((one) => one.under === claim.hypothesis_id);
  const idea = tree.ideas.get(claim.hypothesis_id);
  const node = <ClaimLine claim={claim} tree={tree} isOpen={isOpen === true} />;
  const branches = (
    <>
      {children}
      {below.map((one) => (
        <Branch key={one.hypothesis_id} claim={one} tree={tree} />
      ))}
    </>
  );
  const nested = below.length > 0 || children ? <ul>{branches}</ul> : null;
  if (!idea) {
    return (
      <li>
        {node}
        {nested}
      </li>
    );
  }
  return (
    <li>
      <IdeaLine idea={idea} />
      <ul>
        <li>
          {node}
          {nested}
        </li>
      </ul>
    </li>
  );
}

function ClaimLine({ claim, tree, isOpen }: { claim: Claim; tree: Tree; isOpen: boolean }) {
  const [open, setOpen] = useState(isOpen);
  return (
    <details className="claim" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span className="claim-id">{claim.hypothesis_id}</span>
        <Chip kind={claim.status}>{claim.status}</Chip>
        <span className="claim-words">
          <Words text={claim.statement} />
        </span>
        <Evidence claim={claim} />
        <Difference claim={claim} reach={tree.reach} direction={tree.picture.direction} />
      </summary>
      {open && <ClaimDetails claim={claim} />}
    </details>
  );
}

/** Evidence on the way to what decides, by its logarithm: twice as long is as sure again. */
function Evidence({ claim }: { claim: Claim }) {
  const share = Math.min(Math.max(Math.log(claim.e_value) / Math.log(claim.e_needed), 0), 1);
  const words = `evidence ${figure(claim.e_value)} of ${figure(claim.e_needed)}, ${claim.n_pairs} pairs`;
  return (
    <span className="evidence small">
      <meter min={0} max={1} value={share} title={words} aria-label={words} />
      <span className="quiet">{claim.n_pairs === 0 ? (claim.status === "open" ? "no pairs yet" : "no pairs") : `${claim.n_pairs} pairs`}</span>
    </span>
  );
}

function ClaimDetails({ claim }: { claim: Claim }) {
  return (
    <div className="claim-details small">
      <dl>
        <dt>Stands so</dt>
        <dd>
          {claim.note ? <Words text={claim.note} /> : "evidence is still coming in"}; evidence {figure(claim.e_value)} of{" "}
          {figure(claim.e_needed)} needed
        </dd>
        {claim.difference && (
          <>
            <dt>Difference</dt>
            <dd>
              {figure(claim.difference.estimate)} [{figure(claim.difference.low)}, {figure(claim.difference.high)}],{" "}
              {figure(100 * claim.difference.confidence)} % over {claim.difference.n} pairs
            </dd>
          </>
        )}
        <dt>Predicted</dt>
        <dd>
          {figure(100 * claim.probability)} %{claim.effect === null ? "" : `, gain ${figure(claim.effect)}`}, by{" "}
          <Words text={claim.made_by} />
          {claim.brier === null ? "" : `; Brier ${figure(claim.brier)}`}
        </dd>
        <dt>Rule</dt>
        <dd>
          <Words text={claim.acceptance} />
        </dd>
        {claim.trial_id && (
          <>
            <dt>Tried by</dt>
            <dd>
              <Link href={trialAddress(claim.trial_id)}>{claim.trial_id}</Link>, suggested by{" "}
              <Words text={claim.suggested_by ?? ""} />: <Words text={claim.why} />
              <br />
              <code>{paramsText(claim.params)}</code>
            </dd>
          </>
        )}
      </dl>
      {claim.pairs.length > 0 && <Pairs claim={claim} />}
    </div>
  );
}

function Pairs({ claim }: { claim: Claim }) {
  return (
    <div className="scroll">
      <table className="pairs">
        <thead>
          <tr>
            <th className="number">Seed</th>
            <th className="number">Claimed better</th>
            <th className="number">Default</th>
            <th className="number">Difference</th>
          </tr>
        </thead>
        <tbody>
          {claim.pairs.map((pair) => (
            <tr key={pair.seed}>
              <td className="number">{pair.seed}</td>
              <td className="number">
                <Link href={trialAddress(pair.first)}>{figure(pair.first_value)}</Link>
              </td>
              <td className="number">
                <Link href={trialAddress(pair.second)}>{figure(pair.second_value)}</Link>
              </td>
              <td className="number">{figure(pair.first_value - pair.second_value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {claim.n_pairs > claim.pairs.length && <p className="quiet">and {claim.n_pairs - claim.pairs.length} more pairs</p>}
    </div>
  );
}

function IdeaLine({ idea }: { idea: Idea }) {
  return (
    <div className="idea">
      <span className="said-by">
        <Words text={idea.by} />
      </span>{" "}
      expects: <Words text={idea.text} /> <code>{paramsText(idea.params)}</code>
      <span className="quiet small">
        {" "}
        <Time at={idea.at} />
        {idea.trial_id ? (
          <>
            , tried by <Link href={trialAddress(idea.trial_id)}>{idea.trial_id}</Link>
          </>
        ) : idea.note ? (
          <>
            , not tried: <Words text={idea.note} />
          </>
        ) : idea.taken_at === null ? (
          ", not taken up yet"
        ) : (
          ", taken up"
        )}
      </span>
    </div>
  );
}

export function paramsText(params: { readonly [name: string]: unknown }): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${typeof value === "number" ? figure(value) : String(value)}`)
    .join("  ");
}
