// How the plan came to be what it is: each revision, why, and who said so.

import { useState } from "react";

import type { SessionPicture } from "../api/types";
import { Panel, Time } from "../ui/parts";
import { Words } from "../ui/Words";

const FEW = 8;

export function History({ picture }: { picture: SessionPicture }) {
  const [isWhole, setWhole] = useState(false);
  const { revisions, waiting_words: waiting } = picture;
  if (revisions.length === 0 && waiting.length === 0) return null;
  const shown = isWhole ? revisions : revisions.slice(0, FEW);
  return (
    <Panel title="Revisions" aside={<span className="quiet small">the plan is at revision {picture.session.plan_revision}</span>}>
      <ol className="revisions">
        {waiting.map((said) => (
          <li key={`s${said.steering_id}`} className="by-person">
            <span className="number">·</span>
            <Time at={said.at} />
            <span>
              <Words text={said.words} /> <span className="warn small">not taken up yet</span>
            </span>
          </li>
        ))}
        {shown.map((one) => (
          <li key={one.revision} className={one.said_by.length > 0 ? "by-person" : ""}>
            <span className="number">{one.revision}</span>
            <Time at={one.at} />
            <span>
              {one.said_by.length > 0 && (
                <span className="said-by">
                  <Words text={one.said_by.join(", ")} />
                </span>
              )}{" "}
              <Words text={one.reason} />
            </span>
          </li>
        ))}
      </ol>
      {revisions.length > FEW && (
        <button type="button" className="plain" onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show fewer" : `Show all ${revisions.length}`}
        </button>
      )}
    </Panel>
  );
}
