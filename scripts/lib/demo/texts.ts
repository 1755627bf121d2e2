import type { ClusterInfo } from '../../../test/support/cluster-info.ts';
import { SOURCE } from './apply.ts';
import { VICTIM } from './repair.ts';
import type { Screen } from './screen.ts';
import type { SkillView } from './skills.ts';
import { NAMESPACE } from './stage.ts';

/** What is about to happen. */
export function welcome(screen: Screen, url: string | undefined): void {
  screen.print(
    screen.paint('bold', 'skill-operator demo'),
    'A marketplace in Git becomes validated, stored skills. Everything runs on this machine and is removed at the end.',
    ...(url === undefined
      ? []
      : [
          `The marketplace is ${url}`,
          'Breaking and mending a skill is left out: that needs a repository that the demo may push to.',
        ]),
  );
}

/** What the demo cannot show yet. */
export function limits(screen: Screen, views: readonly SkillView[]): void {
  const waiting = views.filter((view) => view.reason === 'BuildNotConfigured').length;
  const own = waiting === 0 ? 'skills' : `the ${waiting} waiting skills above`;
  screen.print('', screen.paint('bold', 'What this does not show yet'));
  screen.tell(
    `Image builds of the marketplace above: ${waiting === 0 ? `${own} that bring their own Dockerfile would be` : `${own} bring their own Dockerfile; they are`} ` +
      `validated and stored, and wait with reason BuildNotConfigured, since their base images are on the internet. Sandboxes: no sandbox engine runs here; platform template ids come from the operator's map.`,
  );
}

/** What a person can try while everything stays up. */
export function invitation(
  screen: Screen,
  given: { info: ClusterInfo; bucket: string; url: string | undefined },
): void {
  const { info, bucket, url } = given;
  const { kubeconfig, s3, git } = info;
  const skill = url === undefined ? ` ${SOURCE}.${VICTIM.replace('/', '.')}` : '';
  screen.print('', screen.paint('bold', 'Everything stays up until Ctrl-C. In another terminal:'));
  screen.say(
    '',
    `export KUBECONFIG=${kubeconfig}`,
    `kubectl get mps,skl -n ${NAMESPACE}`,
    `kubectl describe skl -n ${NAMESPACE}${skill}`,
    '',
  );
  if (url === undefined) {
    screen.say(
      `git clone ${git.root}/${SOURCE}.git /tmp/${SOURCE}    # change a skill, commit, git push, then:`,
      `kubectl annotate --overwrite mps ${SOURCE} -n ${NAMESPACE} skills.tfrobot.io/requestedAt="$(date +%s)"`,
      '',
    );
  }
  screen.say(
    `export AWS_ENDPOINT_URL=${s3.endpoint} AWS_REGION=${s3.region}`,
    `export AWS_ACCESS_KEY_ID=${s3.accessKey} AWS_SECRET_ACCESS_KEY=${s3.secretKey}`,
    `aws s3 ls --recursive s3://${bucket}    # or any other S3 client`,
    '',
  );
}
