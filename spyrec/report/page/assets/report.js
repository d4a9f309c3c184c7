/* sources: de34eafebfece3dcb185ed6c4abd13d7e272844ef1c3bf0dd51e6b996ce3ac5b */
"use strict";var dagre=(()=>{var J=Object.defineProperty;var Mn=Object.getOwnPropertyDescriptor;var Pn=Object.getOwnPropertyNames;var Fn=Object.prototype.hasOwnProperty;var Dn=(e,n,t)=>n in e?J(e,n,{enumerable:!0,configurable:!0,writable:!0,value:t}):e[n]=t;var je=(e,n)=>{for(var t in n)J(e,t,{get:n[t],enumerable:!0})},An=(e,n,t,r)=>{if(n&&typeof n=="object"||typeof n=="function")for(let o of Pn(n))!Fn.call(e,o)&&o!==t&&J(e,o,{get:()=>n[o],enumerable:!(r=Mn(n,o))||r.enumerable});return e};var Vn=e=>An(J({},"__esModule",{value:!0}),e);var Re=(e,n,t)=>Dn(e,typeof n!="symbol"?n+"":n,t);var Sr={};je(Sr,{Graph:()=>T,debug:()=>de,default:()=>Ir,graphlib:()=>ee,layout:()=>ae,util:()=>jr,version:()=>re});var ee={};je(ee,{Graph:()=>T,alg:()=>H});var Yn=Object.defineProperty,Me=(e,n)=>{for(var t in n)Yn(e,t,{get:n[t],enumerable:!0})},Z=class{constructor(e){this._isDirected=!0,this._isMultigraph=!1,this._isCompound=!1,this._nodes={},this._in={},this._preds={},this._out={},this._sucs={},this._edgeObjs={},this._edgeLabels={},this._nodeCount=0,this._edgeCount=0,this._defaultNodeLabelFn=()=>{},this._defaultEdgeLabelFn=()=>{},e&&(this._isDirected="directed"in e?e.directed:!0,this._isMultigraph="multigraph"in e?e.multigraph:!1,this._isCompound="compound"in e?e.compound:!1),this._isCompound&&(this._parent={},this._children={},this._children["\0"]={})}isDirected(){return this._isDirected}isMultigraph(){return this._isMultigraph}isCompound(){return this._isCompound}setGraph(e){return this._label=e,this}graph(){return this._label}setDefaultNodeLabel(e){return typeof e!="function"?this._defaultNodeLabelFn=()=>e:this._defaultNodeLabelFn=e,this}nodeCount(){return this._nodeCount}nodes(){return Object.keys(this._nodes)}sources(){return this.nodes().filter(e=>Object.keys(this._in[e]).length===0)}sinks(){return this.nodes().filter(e=>Object.keys(this._out[e]).length===0)}setNodes(e,n){return e.forEach(t=>{n!==void 0?this.setNode(t,n):this.setNode(t)}),this}setNode(e,n){return e in this._nodes?(arguments.length>1&&(this._nodes[e]=n),this):(this._nodes[e]=arguments.length>1?n:this._defaultNodeLabelFn(e),this._isCompound&&(this._parent[e]="\0",this._children[e]={},this._children["\0"][e]=!0),this._in[e]={},this._preds[e]={},this._out[e]={},this._sucs[e]={},++this._nodeCount,this)}node(e){return this._nodes[e]}hasNode(e){return e in this._nodes}removeNode(e){if(e in this._nodes){let n=t=>this.removeEdge(this._edgeObjs[t]);delete this._nodes[e],this._isCompound&&(this._removeFromParentsChildList(e),delete this._parent[e],this.children(e).forEach(t=>{this.setParent(t)}),delete this._children[e]),Object.keys(this._in[e]).forEach(n),delete this._in[e],delete this._preds[e],Object.keys(this._out[e]).forEach(n),delete this._out[e],delete this._sucs[e],--this._nodeCount}return this}setParent(e,n){if(!this._isCompound)throw new Error("Cannot set parent in a non-compound graph");if(n===void 0)n="\0";else{n+="";for(let t=n;t!==void 0;t=this.parent(t))if(t===e)throw new Error("Setting "+n+" as parent of "+e+" would create a cycle");this.setNode(n)}return this.setNode(e),this._removeFromParentsChildList(e),this._parent[e]=n,this._children[n][e]=!0,this}parent(e){if(this._isCompound){let n=this._parent[e];if(n!=="\0")return n}}children(e="\0"){if(this._isCompound){let n=this._children[e];if(n)return Object.keys(n)}else{if(e==="\0")return this.nodes();if(this.hasNode(e))return[]}return[]}predecessors(e){let n=this._preds[e];if(n)return Object.keys(n)}successors(e){let n=this._sucs[e];if(n)return Object.keys(n)}neighbors(e){let n=this.predecessors(e);if(n){let t=new Set(n),r=this.successors(e);if(r)for(let o of r)t.add(o);return Array.from(t.values())}}isLeaf(e){var n;let t;return this.isDirected()?t=this.successors(e):t=this.neighbors(e),((n=t==null?void 0:t.length)!=null?n:0)===0}filterNodes(e){let n=new this.constructor({directed:this._isDirected,multigraph:this._isMultigraph,compound:this._isCompound});n.setGraph(this.graph()),Object.entries(this._nodes).forEach(([o,i])=>{e(o)&&n.setNode(o,i)}),Object.values(this._edgeObjs).forEach(o=>{n.hasNode(o.v)&&n.hasNode(o.w)&&n.setEdge(o,this.edge(o))});let t={},r=o=>{let i=this.parent(o);return!i||n.hasNode(i)?(t[o]=i,i):i in t?t[i]:r(i)};return this._isCompound&&n.nodes().forEach(o=>n.setParent(o,r(o))),n}setDefaultEdgeLabel(e){return typeof e!="function"?this._defaultEdgeLabelFn=()=>e:this._defaultEdgeLabelFn=e,this}edgeCount(){return this._edgeCount}edges(){return Object.values(this._edgeObjs)}setPath(e,n){return e.reduce((t,r)=>(n!==void 0?this.setEdge(t,r,n):this.setEdge(t,r),r)),this}setEdge(e,n,t,r){let o,i,s,a,l=!1;typeof e=="object"&&e!==null&&"v"in e?(o=e.v,i=e.w,s=e.name,arguments.length===2&&(a=n,l=!0)):(o=e,i=n,s=r,arguments.length>2&&(a=t,l=!0)),o=""+o,i=""+i,s!==void 0&&(s=""+s);let u=z(this._isDirected,o,i,s);if(u in this._edgeLabels)return l&&(this._edgeLabels[u]=a),this;if(s!==void 0&&!this._isMultigraph)throw new Error("Cannot set a named edge when isMultigraph = false");this.setNode(o),this.setNode(i),this._edgeLabels[u]=l?a:this._defaultEdgeLabelFn(o,i,s);let d=Bn(this._isDirected,o,i,s);return o=d.v,i=d.w,Object.freeze(d),this._edgeObjs[u]=d,Ie(this._preds[i],o),Ie(this._sucs[o],i),this._in[i][u]=d,this._out[o][u]=d,this._edgeCount++,this}edge(e,n,t){let r=arguments.length===1?le(this._isDirected,e):z(this._isDirected,e,n,t);return this._edgeLabels[r]}edgeAsObj(e,n,t){let r=arguments.length===1?this.edge(e):this.edge(e,n,t);return typeof r!="object"||r===null?{label:r}:r}hasEdge(e,n,t){return(arguments.length===1?le(this._isDirected,e):z(this._isDirected,e,n,t))in this._edgeLabels}removeEdge(e,n,t){let r=arguments.length===1?le(this._isDirected,e):z(this._isDirected,e,n,t),o=this._edgeObjs[r];if(o){let i=o.v,s=o.w;delete this._edgeLabels[r],delete this._edgeObjs[r],Se(this._preds[s],i),Se(this._sucs[i],s),delete this._in[s][r],delete this._out[i][r],this._edgeCount--}return this}inEdges(e,n){return this.isDirected()?this.filterEdges(this._in[e],e,n):this.nodeEdges(e,n)}outEdges(e,n){return this.isDirected()?this.filterEdges(this._out[e],e,n):this.nodeEdges(e,n)}nodeEdges(e,n){if(e in this._nodes)return this.filterEdges({...this._in[e],...this._out[e]},e,n)}_removeFromParentsChildList(e){delete this._children[this._parent[e]][e]}filterEdges(e,n,t){if(!e)return;let r=Object.values(e);return t?r.filter(o=>o.v===n&&o.w===t||o.v===t&&o.w===n):r}};function Ie(e,n){e[n]?e[n]++:e[n]=1}function Se(e,n){e[n]!==void 0&&!--e[n]&&delete e[n]}function z(e,n,t,r){let o=""+n,i=""+t;if(!e&&o>i){let s=o;o=i,i=s}return o+""+i+""+(r===void 0?"\0":r)}function Bn(e,n,t,r){let o=""+n,i=""+t;if(!e&&o>i){let a=o;o=i,i=a}let s={v:o,w:i};return r&&(s.name=r),s}function le(e,n){return z(e,n.v,n.w,n.name)}var Wn={};Me(Wn,{read:()=>qn,write:()=>Xn});function Xn(e){let n={options:{directed:e.isDirected(),multigraph:e.isMultigraph(),compound:e.isCompound()},nodes:zn(e),edges:Hn(e)},t=e.graph();return t!==void 0&&(n.value=structuredClone(t)),n}function zn(e){return e.nodes().map(n=>{let t=e.node(n),r=e.parent(n),o={v:n};return t!==void 0&&(o.value=t),r!==void 0&&(o.parent=r),o})}function Hn(e){return e.edges().map(n=>{let t=e.edge(n),r={v:n.v,w:n.w};return n.name!==void 0&&(r.name=n.name),t!==void 0&&(r.value=t),r})}function qn(e){let n=new Z(e.options);return e.value!==void 0&&n.setGraph(e.value),e.nodes.forEach(t=>{n.setNode(t.v,t.value),t.parent&&n.setParent(t.v,t.parent)}),e.edges.forEach(t=>{n.setEdge({v:t.v,w:t.w,name:t.name},t.value)}),n}var H={};Me(H,{CycleException:()=>Q,bellmanFord:()=>Pe,components:()=>Jn,dijkstra:()=>K,dijkstraAll:()=>Zn,findCycles:()=>et,floydWarshall:()=>tt,isAcyclic:()=>ot,postorder:()=>st,preorder:()=>at,prim:()=>dt,shortestPaths:()=>lt,tarjan:()=>De,topsort:()=>Ae});var $n=()=>1;function Pe(e,n,t,r){return Un(e,String(n),t||$n,r||function(o){var i;return(i=e.outEdges(o))!=null?i:[]})}function Un(e,n,t,r){let o={},i,s=0,a=e.nodes(),l=function(c){let f=o[c.v],h=o[c.w];if(!f||!h)return;let g=t(c);f.distance+g<h.distance&&(o[c.w]={distance:f.distance+g,predecessor:c.v},i=!0)},u=function(){a.forEach(function(c){r(c).forEach(function(f){let h=f.v===c?f.v:f.w,g=h===f.v?f.w:f.v;l({v:h,w:g})})})};a.forEach(function(c){let f=c===n?0:Number.POSITIVE_INFINITY;o[c]={distance:f,predecessor:""}});let d=a.length;for(let c=1;c<d&&(i=!1,s++,u(),!!i);c++);if(s===d-1&&(i=!1,u(),i))throw new Error("The graph contains a negative weight cycle");return o}function Jn(e){let n={},t=[],r;function o(i){var s,a;i in n||(n[i]=!0,r.push(i),(s=e.successors(i))==null||s.forEach(o),(a=e.predecessors(i))==null||a.forEach(o))}return e.nodes().forEach(function(i){r=[],o(i),r.length&&t.push(r)}),t}var Fe=class{constructor(){this._arr=[],this._keyIndices={}}size(){return this._arr.length}keys(){return this._arr.map(e=>e.key)}has(e){return e in this._keyIndices}priority(e){let n=this._keyIndices[e];if(n!==void 0)return this._arr[n].priority}min(){if(this.size()===0)throw new Error("Queue underflow");return this._arr[0].key}add(e,n){let t=this._keyIndices,r=String(e);if(!(r in t)){let o=this._arr,i=o.length;return t[r]=i,o.push({key:r,priority:n}),this._decrease(i),!0}return!1}removeMin(){if(this.size()===0)throw new Error("Queue underflow");this._swap(0,this._arr.length-1);let e=this._arr.pop();return delete this._keyIndices[e.key],this._heapify(0),e.key}decrease(e,n){let t=this._keyIndices[e];if(t===void 0)throw new Error(`Key not found: ${e}`);let r=this._arr[t].priority;if(n>r)throw new Error(`New priority is greater than current priority. Key: ${e} Old: ${r} New: ${n}`);this._arr[t].priority=n,this._decrease(t)}_heapify(e){let n=this._arr,t=2*e,r=t+1,o=e;t<n.length&&(o=n[t].priority<n[o].priority?t:o,r<n.length&&(o=n[r].priority<n[o].priority?r:o),o!==e&&(this._swap(e,o),this._heapify(o)))}_decrease(e){let n=this._arr,t=n[e].priority,r;for(;e!==0&&(r=e>>1,!(n[r].priority<t));)this._swap(e,r),e=r}_swap(e,n){let t=this._arr,r=this._keyIndices,o=t[e],i=t[n];t[e]=i,t[n]=o,r[i.key]=e,r[o.key]=n}},Kn=()=>1;function K(e,n,t,r){let o=function(i){var s;return(s=e.outEdges(i))!=null?s:[]};return Qn(e,String(n),t||Kn,r||o)}function Qn(e,n,t,r){let o={},i=new Fe,s,a,l=function(u){let d=u.v!==s?u.v:u.w,c=o[d];if(!c)return;let f=t(u),h=a.distance+f;if(f<0)throw new Error("dijkstra does not allow negative edge weights. Bad edge: "+u+" Weight: "+f);h<c.distance&&(c.distance=h,c.predecessor=s,i.decrease(d,h))};for(e.nodes().forEach(function(u){let d=u===n?0:Number.POSITIVE_INFINITY;o[u]={distance:d,predecessor:""},i.add(u,d)});i.size()>0;){s=i.removeMin();let u=o[s];if(!u||u.distance===Number.POSITIVE_INFINITY)break;a=u,r(s).forEach(l)}return o}function Zn(e,n,t){return e.nodes().reduce(function(r,o){return r[o]=K(e,o,n,t),r},{})}function De(e){let n=0,t=[],r={},o=[];function i(s){var a;let l=r[s]={onStack:!0,lowlink:n,index:n++};if(t.push(s),(a=e.successors(s))==null||a.forEach(function(u){if(u in r){let d=r[u];d!=null&&d.onStack&&(l.lowlink=Math.min(l.lowlink,d.index))}else{i(u);let d=r[u];d&&(l.lowlink=Math.min(l.lowlink,d.lowlink))}}),l.lowlink===l.index){let u=[],d;do{d=t.pop();let c=r[d];c&&(c.onStack=!1),u.push(d)}while(s!==d);o.push(u)}}return e.nodes().forEach(function(s){s in r||i(s)}),o}function et(e){return De(e).filter(function(n){var t;let r=n[0];return r?n.length>1||n.length===1&&((t=e.outEdges(r,r))!=null?t:[]).length>0:!1})}var nt=()=>1;function tt(e,n,t){return rt(e,n||nt,t||function(r){var o;return(o=e.outEdges(r))!=null?o:[]})}function rt(e,n,t){let r={},o=e.nodes();return o.forEach(function(i){let s={};r[i]=s,s[i]={distance:0,predecessor:""},o.forEach(function(a){i!==a&&(s[a]={distance:Number.POSITIVE_INFINITY,predecessor:""})}),t(i).forEach(function(a){let l=a.v===i?a.w:a.v,u=n(a);s[l]={distance:u,predecessor:i}})}),o.forEach(function(i){let s=r[i];s&&o.forEach(function(a){let l=r[a];l&&o.forEach(function(u){let d=l[i],c=s[u],f=l[u];if(d&&c&&f){let h=d.distance+c.distance;h<f.distance&&(f.distance=h,f.predecessor=c.predecessor)}})})}),r}var Q=class extends Error{constructor(e){super(e),this.name="CycleException"}};function Ae(e){let n={},t={},r=[];function o(i){var s;if(i in t)throw new Q;i in n||(t[i]=!0,n[i]=!0,(s=e.predecessors(i))==null||s.forEach(o),delete t[i],r.push(i))}if(e.sinks().forEach(o),Object.keys(n).length!==e.nodeCount())throw new Q;return r}function ot(e){try{Ae(e)}catch(n){if(n instanceof Q)return!1;throw n}return!0}function it(e,n,t,r,o){Array.isArray(n)||(n=[n]);let i=(a=>{var l;return(l=e.isDirected()?e.successors(a):e.neighbors(a))!=null?l:[]}),s={};return n.forEach(function(a){if(!e.hasNode(a))throw new Error("Graph does not have node: "+a);o=Ve(e,a,t==="post",s,i,r,o)}),o}function Ve(e,n,t,r,o,i,s){return n in r||(r[n]=!0,t||(s=i(s,n)),o(n).forEach(function(a){s=Ve(e,a,t,r,o,i,s)}),t&&(s=i(s,n))),s}function Ye(e,n,t){return it(e,n,t,function(r,o){return r.push(o),r},[])}function st(e,n){return Ye(e,n,"post")}function at(e,n){return Ye(e,n,"pre")}function dt(e,n){var t;let r=new Z,o={},i=new Fe,s;function a(d){let c=d.v===s?d.w:d.v,f=i.priority(c);if(f!==void 0){let h=n(d);h<f&&(o[c]=s,i.decrease(c,h))}}if(e.nodeCount()===0)return r;e.nodes().forEach(function(d){i.add(d,Number.POSITIVE_INFINITY),r.setNode(d)});let l=e.nodes()[0];l!==void 0&&i.decrease(l,0);let u=!1;for(;i.size()>0;){if(s=i.removeMin(),s in o)r.setEdge(s,o[s]);else{if(u)throw new Error("Input graph is not connected: "+e);u=!0}(t=e.nodeEdges(s))==null||t.forEach(a)}return r}function lt(e,n,t,r){return ut(e,n,t,r!=null?r:(o=>{var i;return(i=e.outEdges(o))!=null?i:[]}))}function ut(e,n,t,r){if(t===void 0)return K(e,n,t,r);let o=!1,i=e.nodes();for(let s=0;s<i.length;s++){let a=i[s];if(a===void 0)continue;let l=r(a);for(let u=0;u<l.length;u++){let d=l[u];if(!d)continue;let c=d.v===a?d.v:d.w,f=c===d.v?d.w:d.v;t({v:c,w:f})<0&&(o=!0)}if(o)return Pe(e,n,t,r)}return K(e,n,t,r)}var T=Z;function M(e,n,t,r){let o=r;for(;e.hasNode(o);)o=$(r);return t.dummy=n,e.setNode(o,t),o}function Be(e){let n=new T().setGraph(e.graph());return e.nodes().forEach(t=>n.setNode(t,e.node(t))),e.edges().forEach(t=>{let r=n.edge(t.v,t.w)||{weight:0,minlen:1},o=e.edge(t);n.setEdge(t.v,t.w,{weight:r.weight+o.weight,minlen:Math.max(r.minlen,o.minlen)})}),n}function ne(e){let n=new T({multigraph:e.isMultigraph()}).setGraph(e.graph());return e.nodes().forEach(t=>{e.children(t).length||n.setNode(t,e.node(t))}),e.edges().forEach(t=>{n.setEdge(t,e.edge(t))}),n}function ue(e,n){let t=e.x,r=e.y,o=n.x-t,i=n.y-r,s=e.width/2,a=e.height/2;if(!o&&!i)throw new Error("Not possible to find intersection inside of the rectangle");let l,u;return o===0||Math.abs(i)*s>Math.abs(o)*a?(i<0&&(a=-a),l=a*o/i,u=a):(o<0&&(s=-s),l=s,u=s*i/o),{x:t+l,y:r+u}}function P(e){let n=D(fe(e)+1).map(()=>[]);return e.nodes().forEach(t=>{let r=e.node(t),o=r.rank;o!==void 0&&(n[o]||(n[o]=[]),n[o][r.order]=t)}),n}function We(e){let n=e.nodes().map(r=>{let o=e.node(r).rank;return o===void 0?Number.MAX_VALUE:o}),t=S(Math.min,n);e.nodes().forEach(r=>{let o=e.node(r);Object.hasOwn(o,"rank")&&(o.rank-=t)})}function Xe(e){let n=e.nodes().map(s=>e.node(s).rank).filter(s=>s!==void 0),t=S(Math.min,n),r=[];e.nodes().forEach(s=>{let a=e.node(s).rank-t;r[a]||(r[a]=[]),r[a].push(s)});let o=0,i=e.graph().nodeRankFactor;Array.from(r).forEach((s,a)=>{s===void 0&&a%i!==0?--o:s!==void 0&&o&&s.forEach(l=>e.node(l).rank+=o)})}function ce(e,n,t,r){let o={width:0,height:0};return arguments.length>=4&&(o.rank=t,o.order=r),M(e,"border",o,n)}function ct(e,n=ze){let t=[];for(let r=0;r<e.length;r+=n){let o=e.slice(r,r+n);t.push(o)}return t}var ze=65535;function S(e,n){if(n.length>ze){let t=ct(n);return e(...t.map(r=>e(...r)))}else return e(...n)}function fe(e){let t=e.nodes().map(r=>{let o=e.node(r).rank;return o===void 0?Number.MIN_VALUE:o});return S(Math.max,t)}function He(e,n){let t={lhs:[],rhs:[]};return e.forEach(r=>{n(r)?t.lhs.push(r):t.rhs.push(r)}),t}function he(e,n){let t=Date.now();try{return n()}finally{console.log(e+" time: "+(Date.now()-t)+"ms")}}function q(e,n){return n()}var ft=0;function $(e){let n=++ft;return e+(""+n)}function D(e,n,t=1){n==null&&(n=e,e=0);let r=i=>i<n;t<0&&(r=i=>n<i);let o=[];for(let i=e;r(i);i+=t)o.push(i);return o}function W(e,n){let t={};for(let r of n)e[r]!==void 0&&(t[r]=e[r]);return t}function X(e,n){let t;return typeof n=="string"?t=r=>r[n]:t=n,Object.entries(e).reduce((r,[o,i])=>(r[o]=t(i,o),r),{})}function qe(e,n){return e.reduce((t,r,o)=>(t[r]=n[o],t),{})}var V="\0";function te(e,n,t){var u,d,c,f,h,g;if(!(e&&n&&t&&n.dummy==="edge"&&t.dummy==="edge"&&n.edgeObj&&t.edgeObj&&e[n.edgeObj.v]&&e[t.edgeObj.v]&&e[n.edgeObj.w]&&e[t.edgeObj.w]))return 0;let r=!0;n.edgeObj.w===t.edgeObj.w&&(r=!1);let o=r?(d=(u=e[n.edgeObj.v])==null?void 0:u.rank)!=null?d:NaN+1:(f=(c=e[n.edgeObj.w])==null?void 0:c.rank)!=null?f:NaN-1,i=Object.entries(e).find(m=>{var L,y;return((L=m[1].edgeObj)==null?void 0:L.v)===n.edgeObj.v&&((y=m[1].edgeObj)==null?void 0:y.w)===n.edgeObj.w&&m[1].rank===o}),s=Object.entries(e).find(m=>{var L,y;return((L=m[1].edgeObj)==null?void 0:L.v)===t.edgeObj.v&&((y=m[1].edgeObj)==null?void 0:y.w)===t.edgeObj.w&&m[1].rank===o});if(!i||!s)return 0;let a=(h=i[1].order)!=null?h:NaN,l=(g=s[1].order)!=null?g:NaN;return isNaN(a-l)?0:a-l}var re="3.1.3";var be=class{constructor(){Re(this,"_sentinel");let n={};n._next=n._prev=n,this._sentinel=n}dequeue(){let n=this._sentinel,t=n._prev;if(t!==n)return $e(t),t}enqueue(n){let t=this._sentinel;n._prev&&n._next&&$e(n),n._next=t._next,t._next._prev=n,t._next=n,n._prev=t}toString(){let n=[],t=this._sentinel,r=t._prev;for(;r!==t;)n.push(JSON.stringify(r,ht)),r=r._prev;return"["+n.join(", ")+"]"}};function $e(e){e._prev._next=e._next,e._next._prev=e._prev,delete e._next,delete e._prev}function ht(e,n){if(e!=="_next"&&e!=="_prev")return n}var Ue=be;var bt=()=>1;function me(e,n){if(e.nodeCount()<=1)return[];let t=pt(e,n||bt);return gt(t.graph,t.buckets,t.zeroIdx).flatMap(o=>e.outEdges(o.v,o.w)||[])}function gt(e,n,t){var a;let r=[],o=n[n.length-1],i=n[0],s;for(;e.nodeCount();){for(;s=i.dequeue();)ge(e,n,t,s);for(;s=o.dequeue();)ge(e,n,t,s);if(e.nodeCount()){for(let l=n.length-2;l>0;--l)if(s=(a=n[l])==null?void 0:a.dequeue(),s){r=r.concat(ge(e,n,t,s,!0)||[]);break}}}return r}function ge(e,n,t,r,o){let i=[],s=o?i:void 0;return(e.inEdges(r.v)||[]).forEach(a=>{let l=e.edge(a),u=e.node(a.v);o&&i.push({v:a.v,w:a.w}),u.out-=l,pe(n,t,u)}),(e.outEdges(r.v)||[]).forEach(a=>{let l=e.edge(a),u=a.w,d=e.node(u);d.in-=l,pe(n,t,d)}),e.removeNode(r.v),s}function pt(e,n){let t=new T,r=0,o=0;e.nodes().forEach(a=>{t.setNode(a,{v:a,in:0,out:0})}),e.edges().forEach(a=>{let l=t.edge(a.v,a.w)||0,u=n(a),d=l+u;t.setEdge(a.v,a.w,d);let c=t.node(a.v),f=t.node(a.w);o=Math.max(o,c.out+=u),r=Math.max(r,f.in+=u)});let i=mt(o+r+3).map(()=>new Ue),s=r+1;return t.nodes().forEach(a=>{pe(i,s,t.node(a))}),{graph:t,buckets:i,zeroIdx:s}}function pe(e,n,t){var r,o,i;t.out?t.in?(i=e[t.out-t.in+n])==null||i.enqueue(t):(o=e[e.length-1])==null||o.enqueue(t):(r=e[0])==null||r.enqueue(t)}function mt(e){let n=[];for(let t=0;t<e;t++)n.push(t);return n}function Je(e,n){(e.graph().acyclicer==="greedy"?me(e,r(e)):Et(e,n!=null?n:null)).forEach(o=>{let i=e.edge(o);e.removeEdge(o),i.forwardName=o.name,i.reversed=!0,e.setEdge(o.w,o.v,i,$("rev"))});function r(o){return i=>o.edge(i).weight}}function Et(e,n){let t=[],r={},o={};function i(l){Object.hasOwn(o,l)||(o[l]=!0,r[l]=!0,e.outEdges(l).forEach(u=>{Object.hasOwn(r,u.w)?t.push(u):i(u.w)}),delete r[l])}function s(l){var u;Object.hasOwn(o,l)||(o[l]=!0,r[l]=!0,(u=e.outEdges(l))==null||u.forEach(d=>{var c,f;Object.hasOwn(r,d.w)||((c=n.node(l))==null?void 0:c.rank)>((f=n.node(d.w))==null?void 0:f.rank)&&Lt(e,d.w,d)?t.push(d):s(d.w)}),delete r[l])}let a=i;return n&&typeof n.node=="function"&&(a=s),e.sources().forEach(a),e.nodes().forEach(a),t}function Ke(e){e.edges().forEach(n=>{let t=e.edge(n);if(t.reversed){e.removeEdge(n);let r=t.forwardName;delete t.reversed,delete t.forwardName,e.setEdge(n.w,n.v,t,r)}})}function Lt(e,n,t){let r=new Set;function o(i){var s;if(e.sources().includes(i))return!0;r.add(i);for(let a of(s=e.inEdges(i))!=null?s:[])if(!(a.v===t.v&&a.w===t.w)&&!r.has(a.v)&&o(a.v))return!0;return!1}return o(n)}function Qe(e){e.graph().dummyChains=[],e.edges().forEach(n=>wt(e,n))}function wt(e,n){let t=n.v,r=e.node(t).rank,o=n.w,i=e.node(o).rank,s=n.name,a=e.edge(n),l=a.labelRank;if(i===r+1)return;e.removeEdge(n);let u,d,c;for(c=0,++r;r<i;++c,++r)a.points=[],d={width:0,height:0,edgeLabel:a,edgeObj:n,rank:r},u=M(e,"edge",d,"_d"),r===l&&(d.width=a.width,d.height=a.height,d.dummy="edge-label",d.labelpos=a.labelpos),e.setEdge(t,u,{weight:a.weight},s),c===0&&e.graph().dummyChains.push(u),t=u;e.setEdge(t,o,{weight:a.weight},s)}function Ze(e){e.graph().dummyChains.forEach(n=>{let t=e.node(n),r=t.edgeLabel,o;for(e.setEdge(t.edgeObj,r);t.dummy;)o=e.successors(n)[0],e.removeNode(n),r.points.push({x:t.x,y:t.y}),t.dummy==="edge-label"&&(r.x=t.x,r.y=t.y,r.width=t.width,r.height=t.height),n=o,t=e.node(n)})}function U(e){let n={};function t(r){let o=e.node(r);if(Object.hasOwn(n,r))return o.rank;n[r]=!0;let i=e.outEdges(r),s=i?i.map(l=>l==null?Number.POSITIVE_INFINITY:t(l.w)-e.edge(l).minlen):[],a=S(Math.min,s);return a===Number.POSITIVE_INFINITY&&(a=0),o.rank=a}e.sources().forEach(t)}function A(e,n){return e.node(n.w).rank-e.node(n.v).rank-e.edge(n).minlen}var oe=Gt;function Gt(e){let n=new T({directed:!1}),t=e.nodes();if(t.length===0)throw new Error("Graph must have at least one node");let r=t[0],o=e.nodeCount();n.setNode(r,{});let i,s;for(;vt(n,e)<o&&(i=kt(n,e),!!i);)s=n.hasNode(i.v)?A(e,i):-A(e,i),xt(n,e,s);return n}function vt(e,n){function t(r){let o=n.nodeEdges(r);o&&o.forEach(i=>{let s=i.v,a=r===s?i.w:s;!e.hasNode(a)&&!A(n,i)&&(e.setNode(a,{}),e.setEdge(r,a,{}),t(a))})}return e.nodes().forEach(t),e.nodeCount()}function kt(e,n){return n.edges().reduce((r,o)=>{let i=Number.POSITIVE_INFINITY;return e.hasNode(o.v)!==e.hasNode(o.w)&&(i=A(n,o)),i<r[0]?[i,o]:r},[Number.POSITIVE_INFINITY,null])[1]}function xt(e,n,t){e.nodes().forEach(r=>n.node(r).rank+=t)}var{preorder:_t,postorder:Ot}=H,nn=Y;Y.initLowLimValues=Le;Y.initCutValues=Ee;Y.calcCutValue=tn;Y.leaveEdge=on;Y.enterEdge=sn;Y.exchangeEdges=an;function Y(e){e=Be(e),U(e);let n=oe(e);Le(n),Ee(n,e);let t,r;for(;t=on(n);)r=sn(n,e,t),an(n,e,t,r)}function Ee(e,n){let t=Ot(e,e.nodes());t=t.slice(0,t.length-1),t.forEach(r=>Ct(e,n,r))}function Ct(e,n,t){let o=e.node(t).parent,i=e.edge(t,o);i.cutvalue=tn(e,n,t)}function tn(e,n,t){let o=e.node(t).parent,i=!0,s=n.edge(t,o),a=0;s||(i=!1,s=n.edge(o,t)),a=s.weight;let l=n.nodeEdges(t);return l&&l.forEach(u=>{let d=u.v===t,c=d?u.w:u.v;if(c!==o){let f=d===i,h=n.edge(u).weight;if(a+=f?h:-h,jt(e,t,c)){let m=e.edge(t,c).cutvalue;a+=f?-m:m}}}),a}function Le(e,n){arguments.length<2&&(n=e.nodes()[0]),rn(e,{},1,n)}function rn(e,n,t,r,o){let i=t,s=e.node(r);n[r]=!0;let a=e.neighbors(r);return a&&a.forEach(l=>{Object.hasOwn(n,l)||(t=rn(e,n,t,l,r))}),s.low=i,s.lim=t++,o?s.parent=o:delete s.parent,t}function on(e){return e.edges().find(n=>e.edge(n).cutvalue<0)}function sn(e,n,t){let r=t.v,o=t.w;n.hasEdge(r,o)||(r=t.w,o=t.v);let i=e.node(r),s=e.node(o),a=i,l=!1;return i.lim>s.lim&&(a=s,l=!0),n.edges().filter(d=>l===en(e,e.node(d.v),a)&&l!==en(e,e.node(d.w),a)).reduce((d,c)=>A(n,c)<A(n,d)?c:d)}function an(e,n,t,r){let o=t.v,i=t.w;e.removeEdge(o,i),e.setEdge(r.v,r.w,{}),Le(e),Ee(e,n),Tt(e,n)}function Tt(e,n){let t=e.nodes().find(o=>!e.node(o).parent);if(!t)return;let r=_t(e,[t]);r=r.slice(1),r.forEach(o=>{let s=e.node(o).parent,a=n.edge(o,s),l=!1;a||(a=n.edge(s,o),l=!0),n.node(o).rank=n.node(s).rank+(l?a.minlen:-a.minlen)})}function jt(e,n,t){return e.hasEdge(n,t)}function en(e,n,t){return t.low<=n.lim&&n.lim<=t.lim}var ln=Rt;function Rt(e){let n=e.graph().ranker;if(typeof n=="function")return n(e);switch(n){case"network-simplex":dn(e);break;case"tight-tree":St(e);break;case"longest-path":It(e);break;case"none":break;default:dn(e)}}var It=U;function St(e){U(e),oe(e)}function dn(e){nn(e)}var un=Mt;function Mt(e){let n=Ft(e),t=e.graph();if(!Array.isArray(t.dummyChains))return;t.dummyChains.forEach(o=>{let i=e.node(o),s=i.edgeObj,a=Pt(e,n,s.v,s.w),l=a.path,u=a.lca,d=0,c=l[d],f=!0;for(;o!==s.w;){if(i=e.node(o),f){for(;(c=l[d])!==u&&e.node(c).maxRank<i.rank;)d++;c===u&&(f=!1)}if(!f){for(;d<l.length-1&&e.node(l[d+1]).minRank<=i.rank;)d++;c=l[d]}c!==void 0&&e.setParent(o,c),o=e.successors(o)[0]}})}function Pt(e,n,t,r){let o=[],i=[],s=Math.min(n[t].low,n[r].low),a=Math.max(n[t].lim,n[r].lim),l;l=t;do l=e.parent(l),o.push(l);while(l&&(n[l].low>s||a>n[l].lim));let u=l,d=r;for(;(d=e.parent(d))!==u;)i.push(d);return{path:o.concat(i.reverse()),lca:u}}function Ft(e){let n={},t=0;function r(o){let i=t;e.children(o).forEach(r),n[o]={low:i,lim:t++}}return e.children(V).forEach(r),n}function cn(e){let n=M(e,"root",{},"_root"),t=Dt(e),r=Object.values(t),o=S(Math.max,r)-1,i=2*o+1;e.graph().nestingRoot=n,e.edges().forEach(a=>e.edge(a).minlen*=i);let s=At(e)+1;e.children(V).forEach(a=>{fn(e,n,i,s,o,t,a)}),e.graph().nodeRankFactor=i}function fn(e,n,t,r,o,i,s){var c;let a=e.children(s);if(!a.length){s!==n&&e.setEdge(n,s,{weight:0,minlen:t});return}let l=ce(e,"_bt"),u=ce(e,"_bb"),d=e.node(s);e.setParent(l,s),d.borderTop=l,e.setParent(u,s),d.borderBottom=u,a.forEach(f=>{var b;fn(e,n,t,r,o,i,f);let h=e.node(f),g=h.borderTop?h.borderTop:f,m=h.borderBottom?h.borderBottom:f,L=h.borderTop?r:2*r,y=g!==m?1:o-((b=i[s])!=null?b:0)+1;e.setEdge(l,g,{weight:L,minlen:y,nestingEdge:!0}),e.setEdge(m,u,{weight:L,minlen:y,nestingEdge:!0})}),e.parent(s)||e.setEdge(n,l,{weight:0,minlen:o+((c=i[s])!=null?c:0)})}function Dt(e){let n={};function t(r,o){let i=e.children(r);i&&i.length&&i.forEach(s=>t(s,o+1)),n[r]=o}return e.children(V).forEach(r=>t(r,1)),n}function At(e){return e.edges().reduce((n,t)=>n+e.edge(t).weight,0)}function hn(e){let n=e.graph();e.removeNode(n.nestingRoot),delete n.nestingRoot,e.edges().forEach(t=>{e.edge(t).nestingEdge&&e.removeEdge(t)})}var gn=Yt;function Yt(e){function n(t){let r=e.children(t),o=e.node(t);if(r.length&&r.forEach(n),o&&Object.hasOwn(o,"minRank")){o.borderLeft=[],o.borderRight=[];for(let i=o.minRank,s=o.maxRank+1;i<s;++i)bn(e,"borderLeft","_bl",t,o,i),bn(e,"borderRight","_br",t,o,i)}}e.children(V).forEach(n)}function bn(e,n,t,r,o,i){let s={width:0,height:0,rank:i,borderType:n},a=o[n][i-1],l=M(e,"border",s,t);o[n][i]=l,e.setParent(l,r),a&&e.setEdge(a,l,{weight:1})}function mn(e){var t;let n=(t=e.graph().rankdir)==null?void 0:t.toLowerCase();(n==="lr"||n==="rl")&&Ln(e)}function En(e){var t;let n=(t=e.graph().rankdir)==null?void 0:t.toLowerCase();(n==="bt"||n==="rl")&&Bt(e),(n==="lr"||n==="rl")&&(Wt(e),Ln(e))}function Ln(e){e.nodes().forEach(n=>pn(e.node(n))),e.edges().forEach(n=>pn(e.edge(n)))}function pn(e){let n=e.width;e.width=e.height,e.height=n}function Bt(e){e.nodes().forEach(n=>ye(e.node(n))),e.edges().forEach(n=>{var r;let t=e.edge(n);(r=t.points)==null||r.forEach(ye),Object.hasOwn(t,"y")&&ye(t)})}function ye(e){e.y=-e.y}function Wt(e){e.nodes().forEach(n=>we(e.node(n))),e.edges().forEach(n=>{var r;let t=e.edge(n);(r=t.points)==null||r.forEach(we),Object.hasOwn(t,"x")&&we(t)})}function we(e){let n=e.x;e.x=e.y,e.y=n}function Ne(e,n=null){let t={},r=e.nodes().filter(d=>!e.children(d).length),o=r.map(d=>e.node(d).rank),i=S(Math.max,o),s=D(i+1).map(()=>[]);function a(d){if(t[d])return;t[d]=!0;let c=e.node(d);s[c.rank].push(d);let f=e.successors(d);f&&[...f].sort((g,m)=>u(g,m)).forEach(a)}r.sort((d,c)=>e.node(d).rank-e.node(c).rank).forEach(a);function u(d,c){let f=e.node(d),h=e.node(c);return te(n,f,h)}return s}function Ge(e,n){let t=0;for(let r=1;r<n.length;++r)t+=zt(e,n[r-1],n[r]);return t}function zt(e,n,t){let r=qe(t,t.map((u,d)=>d)),o=n.flatMap(u=>{let d=e.outEdges(u);return d?d.map(c=>({pos:r[c.w],weight:e.edge(c).weight})).sort((c,f)=>c.pos-f.pos):[]}),i=1;for(;i<t.length;)i<<=1;let s=2*i-1;i-=1;let a=new Array(s).fill(0),l=0;return o.forEach(u=>{let d=u.pos+i;a[d]+=u.weight;let c=0;for(;d>0;)d%2&&(c+=a[d+1]),d=d-1>>1,a[d]+=u.weight;l+=u.weight*c}),l}function ve(e,n=[]){return n.map(t=>{let r=e.inEdges(t);if(!r||!r.length)return{v:t};{let o=r.reduce((i,s)=>{let a=e.edge(s),l=e.node(s.v);return{sum:i.sum+a.weight*l.order,weight:i.weight+a.weight}},{sum:0,weight:0});return{v:t,barycenter:o.sum/o.weight,weight:o.weight}}})}function ke(e,n){let t={};e.forEach((o,i)=>{let s={indegree:0,in:[],out:[],vs:[o.v],i};o.barycenter!==void 0&&(s.barycenter=o.barycenter,s.weight=o.weight),t[o.v]=s}),n.edges().forEach(o=>{let i=t[o.v],s=t[o.w];i!==void 0&&s!==void 0&&(s.indegree++,i.out.push(s))});let r=Object.values(t).filter(o=>!o.indegree);return Ht(r)}function Ht(e){let n=[];function t(o){return i=>{i.merged||(i.barycenter===void 0||o.barycenter===void 0||i.barycenter>=o.barycenter)&&qt(o,i)}}function r(o){return i=>{i.in.push(o),--i.indegree===0&&e.push(i)}}for(;e.length;){let o=e.pop();n.push(o),o.in.reverse().forEach(t(o)),o.out.forEach(r(o))}return n.filter(o=>!o.merged).map(o=>W(o,["vs","i","barycenter","weight"]))}function qt(e,n){let t=0,r=0;e.weight&&(t+=e.barycenter*e.weight,r+=e.weight),n.weight&&(t+=n.barycenter*n.weight,r+=n.weight),e.vs=n.vs.concat(e.vs),e.barycenter=t/r,e.weight=r,e.i=Math.min(n.i,e.i),n.merged=!0}function xe(e,n,t,r,o){let i={},s=null,a=null,l=o;typeof n=="boolean"?(l=n,i={}):n&&(i=n,s=t!=null?t:null,a=r!=null?r:null);let u=He(e,y=>Object.hasOwn(y,"barycenter")),d=u.lhs,c=u.rhs.sort((y,b)=>b.i-y.i),f=[],h=0,g=0,m=0;d.sort($t(a,s,!!l));for(let[y,b]of Object.entries(i)){let p=d.findIndex(E=>E.vs[0]===y);d.splice(p+1,0,b)}m=yn(f,c,m),d.forEach(y=>{m+=y.vs.length,f.push(y.vs),h+=y.barycenter*y.weight,g+=y.weight,m=yn(f,c,m)});let L={vs:f.flat(1)};return g&&(L.barycenter=h/g,L.weight=g),L}function yn(e,n,t){let r;for(;n.length&&(r=n[n.length-1]).i<=t;)n.pop(),e.push(r.vs),t++;return t}function $t(e,n,t){return(r,o)=>{if(r.barycenter<o.barycenter)return-1;if(r.barycenter>o.barycenter)return 1;if(e&&(typeof r.vs[0]=="string"||typeof o.vs[0]=="string")){let i=e.node(r.vs[0]),s=e.node(o.vs[0]),a=te(n,i,s);if(a!==0)return a}return t?o.i-r.i:r.i-o.i}}function ie(e,n,t,r,o){var y,b,p,E,w,k,_,O,j,R,I;let i=null,s=o;typeof r=="boolean"?(s=r,i=null):r!==void 0&&(i=r);let a=e.children(n),l=e.node(n),u=l?l.borderLeft:void 0,d=l?l.borderRight:void 0,c={};u&&(a=a.filter(v=>v!==u&&v!==d));let f=ve(e,a);f.forEach(v=>{if(e.children(v.v).length){let{result:x}=ie(e,v.v,t,i,s);c[v.v]=x,Object.hasOwn(x,"barycenter")&&Jt(v,x)}});let h=ke(f,t);Ut(h,c);let g={},m=!1;for(let v=0;v<h.length;v++)for(let x=v+1;x<h.length;x++)if(!(!h[v]||!h[x]||!((y=h[v])!=null&&y.barycenter)||!((b=h[x])!=null&&b.barycenter))&&((p=h[v])==null?void 0:p.barycenter)===h[x].barycenter){let G=(w=(E=h[v])==null?void 0:E.vs[0])!=null?w:"",N=(_=(k=h[x])==null?void 0:k.vs[0])!=null?_:"",C=e.node(G),B=e.node(N);if(C.dummy==="edge"&&B.dummy==="edge"&&((O=C.edgeObj)==null?void 0:O.v)===((j=B.edgeObj)==null?void 0:j.v)&&((R=C.edgeObj)==null?void 0:R.w)===((I=B.edgeObj)==null?void 0:I.w))if(C.edgeLabel.reversed){g[N]=h[v],h.splice(v,1),v--;break}else g[G]||(g[G]=h[x],h.splice(x,1),x--);else m=!0}let L=xe(h,g,i,e,s);if(u&&d){L.vs=[u,L.vs,d].flat(1);let v=e.predecessors(u);if(v&&v.length){let x=e.node(v[0]),G=e.predecessors(d),N=e.node(G[0]);Object.hasOwn(L,"barycenter")||(L.barycenter=0,L.weight=0),L.barycenter=(L.barycenter*L.weight+x.order+N.order)/(L.weight+2),L.weight+=2}}return Object.defineProperty(L,"result",{value:L,enumerable:!1,configurable:!0,writable:!0}),Object.defineProperty(L,"usedBias",{value:m,enumerable:!1,configurable:!0,writable:!0}),L}function Ut(e,n){e.forEach(t=>{t.vs=t.vs.flatMap(r=>n[r]?n[r].vs:r)})}function Jt(e,n){e.barycenter!==void 0?(e.barycenter=(e.barycenter*e.weight+n.barycenter*n.weight)/(e.weight+n.weight),e.weight+=n.weight):(e.barycenter=n.barycenter,e.weight=n.weight)}function _e(e,n,t,r){r||(r=e.nodes());let o=Kt(e),i=new T({compound:!0}).setGraph({root:o}).setDefaultNodeLabel(s=>e.node(s));return r.forEach(s=>{let a=e.node(s),l=e.parent(s);if(a.rank===n||a.minRank<=n&&n<=a.maxRank){i.setNode(s),i.setParent(s,l||o);let u=e[t](s);u&&u.forEach(d=>{let c=d.v===s?d.w:d.v,f=i.edge(c,s),h=f!==void 0?f.weight:0;i.setEdge(c,s,{weight:e.edge(d).weight+h})}),Object.hasOwn(a,"minRank")&&i.setNode(s,{borderLeft:a.borderLeft[n],borderRight:a.borderRight[n]})}}),i}function Kt(e){let n;for(;e.hasNode(n=$("_root")););return n}function Oe(e,n,t){let r={},o;t.forEach(i=>{let s=e.parent(i),a,l;for(;s;){if(a=e.parent(s),a?(l=r[a],r[a]=s):(l=o,o=s),l&&l!==s){n.setEdge(l,s);return}s=a}})}function se(e,n={},t=null){if(typeof n.customOrder=="function"){n.customOrder(e,se);return}let r=fe(e),o=wn(e,D(1,r+1),"inEdges"),i=wn(e,D(r-1,-1,-1),"outEdges"),s=Ne(e,t);if(Nn(e,s),n.disableOptimalOrderHeuristic)return;let a=Number.POSITIVE_INFINITY,l,u=n.constraints||[];for(let d=0,c=0;c<4;++d,++c){Qt(d%2?o:i,d%4>=2,u,t),s=P(e);let f=Ge(e,s);f<a?(c=0,l=Object.assign({},s),a=f):f===a&&(l=structuredClone(s))}Nn(e,l)}function wn(e,n,t){let r=new Map,o=(i,s)=>{r.has(i)||r.set(i,[]),r.get(i).push(s)};for(let i of e.nodes()){let s=e.node(i);if(typeof s.rank=="number"&&o(s.rank,i),typeof s.minRank=="number"&&typeof s.maxRank=="number")for(let a=s.minRank;a<=s.maxRank;a++)a!==s.rank&&o(a,i)}return n.map(function(i){return _e(e,i,t,r.get(i)||[])})}function Qt(e,n,t,r){let o=!0,i=new T;e.forEach(function(s){t.forEach(d=>i.setEdge(d.left,d.right));let a=s.graph().root,{result:l,usedBias:u}=ie(s,a,i,r,o);n&&u&&(o=!o),l.vs.forEach((d,c)=>s.node(d).order=c),Oe(s,i,l.vs)})}function Nn(e,n){Object.values(n).forEach(t=>t.forEach((r,o)=>e.node(r).order=o))}function Zt(e,n){let t={};function r(o,i){let s=0,a=0,l=o.length,u=i[i.length-1];return i.forEach((d,c)=>{let f=nr(e,d),h=f?e.node(f).order:l;(f||d===u)&&(i.slice(a,c+1).forEach(g=>{let m=e.predecessors(g);m&&m.forEach(L=>{let y=e.node(L),b=y.order;(b<s||h<b)&&!(y.dummy&&e.node(g).dummy)&&vn(t,L,g)})}),a=c+1,s=h)}),i}return n.length&&n.reduce(r),t}function er(e,n){let t={};function r(a){var l;return((l=e.node(a))==null?void 0:l.dummy)==="border"}if(!e.nodes().some(r))return t;function i(a,l,u,d,c){D(l,u).forEach(f=>{let h=a[f];if(h!==void 0&&e.node(h).dummy){let g=e.predecessors(h);g&&g.forEach(m=>{if(m===void 0)return;let L=e.node(m);L.dummy&&(L.order<d||L.order>c)&&vn(t,m,h)})}})}function s(a,l){let u=-1,d=-1,c=0;return l.forEach((f,h)=>{if(r(f)){let g=e.predecessors(f);if(g&&g.length){let m=g[0];if(m===void 0)return;d=e.node(m).order,i(l,c,h,u,d),c=h,u=d}}i(l,c,l.length,d,a.length)}),l}return n.length&&n.reduce(s),t}function nr(e,n){if(e.node(n).dummy){let t=e.predecessors(n);if(t)return t.find(r=>e.node(r).dummy)}}function vn(e,n,t){if(n>t){let o=n;n=t,t=o}let r=e[n];r||(e[n]=r={}),r[t]=!0}function tr(e,n,t){if(n>t){let o=n;n=t,t=o}let r=e[n];return r!==void 0&&Object.hasOwn(r,t)}function rr(e,n,t,r,o){let i={},s={},a={};return n.forEach(l=>{l.forEach((u,d)=>{i[u]=u,s[u]=u,a[u]=d})}),n.forEach(l=>{let u=-1,d=-1,c=!1,f=l,h=l.findIndex(g=>(o==null?void 0:o.includes(g))||Gn(g,e,o));h>0&&(f=[l[h],...l.slice(0,h),...l.slice(h+1)],c=!0),f.forEach(g=>{var L;let m=r(g);if(m&&m.length){o!=null&&o.includes(g)&&(m=m.filter(p=>Gn(p,e,o)));let y=m.sort((p,E)=>{let w=a[p],k=a[E];return(w!==void 0?w:0)-(k!==void 0?k:0)}),b=(y.length-1)/2;for(let p=Math.floor(b),E=Math.ceil(b);p<=E;++p){let w=y[p];if(w===void 0)continue;let k=a[w];if(k!==void 0&&s[g]===g&&u<k&&a[w]!==d&&!tr(t,g,w)){let _=i[w];_!==void 0&&(s[w]=g,s[g]=i[g]=_,u=k,c&&(u=-1,d=(L=a[w])!=null?L:-1,c=!1))}}}})}),{root:i,align:s}}function or(e,n,t,r,o=!1){let i={},s=ir(e,n,t,o),a=o?"borderLeft":"borderRight";function l(h,g){let m=s.nodes().slice(),L={},y=m.pop();for(;y;){if(L[y])h(y);else{L[y]=!0,m.push(y);for(let b of g(y))m.push(b)}y=m.pop()}}function u(h){let g=s.inEdges(h);g?i[h]=g.reduce((m,L)=>{var p;let y=(p=i[L.v])!=null?p:0,b=s.edge(L);return Math.max(m,y+(b!==void 0?b:0))},0):i[h]=0}function d(h){let g=s.outEdges(h),m=Number.POSITIVE_INFINITY;g&&(m=g.reduce((y,b)=>{let p=i[b.w],E=s.edge(b);return Math.min(y,(p!==void 0?p:0)-(E!==void 0?E:0))},Number.POSITIVE_INFINITY));let L=e.node(h);m!==Number.POSITIVE_INFINITY&&L.borderType!==a&&(i[h]=Math.max(i[h]!==void 0?i[h]:0,m))}function c(h){return s.predecessors(h)||[]}function f(h){return s.successors(h)||[]}return l(u,c),l(d,f),Object.keys(r).forEach(h=>{var m;let g=t[h];g!==void 0&&(i[h]=(m=i[g])!=null?m:0)}),i}function ir(e,n,t,r){let o=new T,i=e.graph(),s=lr(i.nodesep,i.edgesep,r);return n.forEach(a=>{let l;a.forEach(u=>{let d=t[u];if(d!==void 0){if(o.setNode(d),l!==void 0){let c=t[l];if(c!==void 0){let f=o.edge(c,d);o.setEdge(c,d,Math.max(s(e,u,l),f||0))}}l=u}})}),o}function sr(e,n){return Object.values(n).reduce((t,r)=>{let o=Number.NEGATIVE_INFINITY,i=Number.POSITIVE_INFINITY;Object.entries(r).forEach(([a,l])=>{let u=ur(e,a)/2;o=Math.max(l+u,o),i=Math.min(l-u,i)});let s=o-i;return s<t[0]&&(t=[s,r]),t},[Number.POSITIVE_INFINITY,null])[1]}function ar(e,n){let t=Object.values(n),r=S(Math.min,t),o=S(Math.max,t);["u","d"].forEach(i=>{["l","r"].forEach(s=>{let a=i+s,l=e[a];if(!l||l===n)return;let u=Object.values(l),d=r-S(Math.min,u);s!=="l"&&(d=o-S(Math.max,u)),d&&(e[a]=X(l,c=>c+d))})})}function dr(e,n=void 0){let t=e.ul;return t?X(t,(r,o)=>{var s,a;if(n){let l=n.toLowerCase(),u=e[l];if(u&&u[o]!==void 0)return u[o]}let i=Object.values(e).map(l=>{let u=l[o];return u!==void 0?u:0}).sort((l,u)=>l-u);return(((s=i[1])!=null?s:0)+((a=i[2])!=null?a:0))/2}):{}}function kn(e,n){let t=P(e),r=Object.assign(Zt(e,t),er(e,t)),o={},i;["u","d"].forEach(a=>{i=a==="u"?t:Object.values(t).reverse(),["l","r"].forEach(l=>{l==="r"&&(i=i.map(f=>Object.values(f).reverse()));let d=rr(e,i,r,f=>(a==="u"?e.predecessors(f):e.successors(f))||[],n),c=or(e,i,d.root,d.align,l==="r");l==="r"&&(c=X(c,f=>-f)),o[a+l]=c})});let s=sr(e,o);return ar(o,s),dr(o,e.graph().align)}function lr(e,n,t){return(r,o,i)=>{let s=r.node(o),a=r.node(i),l=0,u;if(l+=s.width/2,Object.hasOwn(s,"labelpos"))switch(s.labelpos.toLowerCase()){case"l":u=-s.width/2;break;case"r":u=s.width/2;break}if(u&&(l+=t?u:-u),u=void 0,l+=(s.dummy?n:e)/2,l+=(a.dummy?n:e)/2,l+=a.width/2,Object.hasOwn(a,"labelpos"))switch(a.labelpos.toLowerCase()){case"l":u=a.width/2;break;case"r":u=-a.width/2;break}return u&&(l+=t?u:-u),l}}function ur(e,n){return e.node(n).width}function Gn(e,n,t){var s;if(!t)return!1;let r=(s=n.node(e))==null?void 0:s.edgeObj;if(!r||n.node(e).edgeLabel.reversed)return!1;let o=t.indexOf(r==null?void 0:r.v),i=t.indexOf(r==null?void 0:r.w);return o!==-1&&i!==-1&&o===(i+1)%t.length||o===(i-1)%t.length}function xn(e,n){e=ne(e),cr(e),Object.entries(kn(e,n)).forEach(([t,r])=>e.node(t).x=r)}function cr(e){let n=P(e),t=e.graph(),r=t.ranksep,o=t.rankalign,i=0;n.forEach(s=>{let a=s.reduce((l,u)=>{var c;let d=(c=e.node(u).height)!=null?c:0;return l>d?l:d},0);s.forEach(l=>{let u=e.node(l);o==="top"?u.y=i+u.height/2:o==="bottom"?u.y=i+a-u.height/2:u.y=i+a/2}),i+=a+r})}var _n=new WeakMap;function ae(e,n={}){return Sn(e,q,n),e}function On(e,n,t){let r=n;for(;r!==void 0;){let o=e.parent(r);if(o===t)return r;r=o}}function Sn(e,n,t){var y;let r=e.nodes().filter(b=>e.children(b).length),o={};r.forEach(b=>{let p=e.node(b);if(p&&p.rankdir){let E=new T({multigraph:!0,compound:!0});E.setGraph({rankdir:p.rankdir});let w=e.children(b);w.forEach(G=>{let N={...e.node(G)};E.setNode(G,N);let C=e.parent(G);C&&C!==b&&w.includes(C)&&E.setParent(G,C)});let k=new Set;e.edges().forEach(G=>{let N=On(e,G.v,b),C=On(e,G.w,b);if(N===G.v&&C===G.w)E.setEdge(G,{...e.edge(G)});else if(N&&C&&N!==C){let B=`${N}\0${C}`;k.has(B)||(k.add(B),E.setEdge(N,C,{...e.edge(G)}))}}),Sn(E,n,t);let _=In(E);Tn(_,n,t,null),jn(E,_);let O=1/0,j=1/0,R=-1/0,I=-1/0;E.nodes().forEach(G=>{if(G===b)return;let N=E.node(G);N&&typeof N.x=="number"&&typeof N.y=="number"&&typeof N.width=="number"&&typeof N.height=="number"&&(O=Math.min(O,N.x-N.width/2),R=Math.max(R,N.x+N.width/2),j=Math.min(j,N.y-N.height/2),I=Math.max(I,N.y+N.height/2))}),(!isFinite(O)||!isFinite(j)||!isFinite(R)||!isFinite(I))&&(O=j=0,R=I=0);let v=R-O,x=I-j;o[b]={minX:O,minY:j,maxX:R,maxY:I,width:v,height:x,offsetX:O,offsetY:j},p._dagreClusterSubgraph=E}});let i=[],s=b=>{let p=[],E=(e.children(b)||[]).filter(w=>w!==b);for(;E.length>0;){let w=E.shift();p.push(w),(e.children(w)||[]).filter(k=>k!==w).forEach(k=>E.push(k))}return p},a=new Map;r.forEach(b=>{let p=e.node(b);p&&p.rankdir&&o[b]&&a.set(b,(e.children(b)||[]).filter(E=>E!==b))});let l=new Set([...a.values()].flat()),u=new Map;a.forEach((b,p)=>{l.has(p)||u.set(p,s(p))});let d=new Set([...u.values()].flat()),c=b=>{for(let[p,E]of u)if(E.includes(b))return p;return b},f=[];e.edges().forEach(b=>{(d.has(b.v)||d.has(b.w))&&f.push({edge:b,label:e.edge(b)})});let h=new Map;d.forEach(b=>{let p=e.parent(b);h.set(b,typeof p=="string"?p:void 0)}),u.forEach((b,p)=>{let E=e.node(p),w=[];b.forEach(O=>{let j=e.node(O);j&&(w.push({id:O,node:j,parent:h.get(O)}),e.removeNode(O))});let k=f.filter(({edge:O})=>b.includes(O.v)||b.includes(O.w)),_=o[p];E&&(i.push({clusterId:p,subgraph:E._dagreClusterSubgraph,bounds:_,children:b,removedNodes:w,removedEdges:k}),E.width=_.width,E.height=_.height)});let g=new Set;f.forEach(({edge:b,label:p})=>{let E=c(b.v),w=c(b.w);if(E!==w&&e.hasNode(E)&&e.hasNode(w)){let k=`${E}\0${w}`;g.has(k)||(g.add(k),e.setEdge(E,w,{...p,width:0,height:0}))}});let m=In(e),L=Tn(m,n,t,(y=_n.get(e))!=null?y:null);_n.set(e,L),jn(e,m),g.forEach(b=>{let p=b.indexOf("\0"),E=b.slice(0,p),w=b.slice(p+1);e.hasEdge(E,w)&&e.removeEdge(E,w)}),i.forEach(({clusterId:b,subgraph:p,bounds:E,removedNodes:w,removedEdges:k})=>{var v,x;let _=e.node(b),O=(v=_==null?void 0:_.x)!=null?v:0,j=(x=_==null?void 0:_.y)!=null?x:0,R=(E.minX+E.maxX)/2,I=(E.minY+E.maxY)/2;w.forEach(({id:G,node:N,parent:C})=>{e.setNode(G,N),C!==void 0&&e.setParent(G,C)}),k.forEach(({edge:G,label:N})=>{e.setEdge(G,N)}),p.nodes().forEach(G=>{if(G===b)return;let N=p.node(G),C=e.node(G);C&&N&&typeof N.x=="number"&&typeof N.y=="number"&&(C.x=O+(N.x-R),C.y=j+(N.y-I))}),Cn(e,p,O-R,j-I),delete _._dagreClusterSubgraph}),r.forEach(b=>{var w,k;let p=e.node(b),E=o[b];if(p&&p.rankdir&&p._dagreClusterSubgraph&&E){let _=p._dagreClusterSubgraph,O=(w=p.x)!=null?w:0,j=(k=p.y)!=null?k:0,R=(E.minX+E.maxX)/2,I=(E.minY+E.maxY)/2;_.nodes().forEach(v=>{if(v===b)return;let x=_.node(v),G=e.node(v);if(G&&x&&typeof x.x=="number"&&typeof x.y=="number"){let N=x.x-R,C=x.y-I;G.x=O+N,G.y=j+C}}),Cn(e,_,O-R,j-I),delete p._dagreClusterSubgraph}})}function Cn(e,n,t,r){n.edges().forEach(o=>{if(!e.hasEdge(o))return;let i=n.edge(o),s=e.edge(o);s.points=i.points.map(a=>({x:a.x+t,y:a.y+r})),Object.hasOwn(i,"x")&&(s.x=i.x+t,s.y=i.y+r)})}function Tn(e,n,t,r=null){var l,u;let o=(t==null?void 0:t.useDynamic)!==!1,i=o&&(l=r==null?void 0:r.graph)!=null?l:null,s=o&&(u=r==null?void 0:r.rawNodes)!=null?u:null;n("    makeSpaceForEdgeLabels",()=>Lr(e)),n("    removeSelfEdges",()=>Or(e)),n("    acyclic",()=>Je(e,i)),n("    nestingGraph.run",()=>cn(e)),n("    rank",()=>ln(ne(e))),n("    injectEdgeLabelProxies",()=>yr(e)),n("    removeEmptyRanks",()=>Xe(e)),n("    nestingGraph.cleanup",()=>hn(e)),n("    normalizeRanks",()=>We(e)),n("    assignRankMinMax",()=>wr(e)),n("    removeEdgeLabelProxies",()=>Nr(e)),n("    normalize.run",()=>Qe(e)),n("    parentDummyChains",()=>un(e)),n("    addBorderSegments",()=>gn(e)),n("    order",()=>se(e,t,s)),n("    insertSelfEdges",()=>Cr(e)),n("    adjustCoordinateSystem",()=>mn(e)),n("    position",()=>xn(e,t.corePath)),n("    positionSelfEdges",()=>Tr(e));let a=JSON.parse(JSON.stringify(e._nodes));return n("    removeBorderNodes",()=>_r(e)),n("    normalize.undo",()=>Ze(e)),n("    fixupEdgeLabelCoords",()=>kr(e)),n("    undoCoordinateSystem",()=>En(e)),n("    translateGraph",()=>Gr(e)),n("    assignNodeIntersects",()=>vr(e)),n("    reversePoints",()=>xr(e)),n("    acyclic.undo",()=>Ke(e)),{graph:e,rawNodes:a}}function jn(e,n){e.nodes().forEach(t=>{let r=e.node(t),o=n.node(t);r&&(r.x=o.x,r.y=o.y,r.order=o.order,r.rank=o.rank,n.children(t).length&&(r.width=o.width,r.height=o.height))}),e.edges().forEach(t=>{let r=e.edge(t),o=n.edge(t);r.points=o.points,Object.hasOwn(o,"x")&&(r.x=o.x,r.y=o.y)}),e.graph().width=n.graph().width,e.graph().height=n.graph().height}var fr=["nodesep","edgesep","ranksep","marginx","marginy"],hr={ranksep:50,edgesep:20,nodesep:50,rankdir:"TB",rankalign:"center"},br=["acyclicer","ranker","rankdir","align","rankalign"],gr=["width","height","rank"],Rn={width:0,height:0},pr=["minlen","weight","width","height","labeloffset"],mr={minlen:1,weight:1,width:0,height:0,labeloffset:10,labelpos:"r"},Er=["labelpos"];function In(e){let n=new T({multigraph:!0,compound:!0}),t=Te(e.graph());return n.setGraph(Object.assign({},hr,Ce(t,fr),W(t,br))),e.nodes().forEach(r=>{let o=Te(e.node(r)),i=Ce(o,gr);Object.keys(Rn).forEach(a=>{i[a]===void 0&&(i[a]=Rn[a])}),n.setNode(r,i);let s=e.parent(r);s!==void 0&&n.setParent(r,s)}),e.edges().forEach(r=>{let o=Te(e.edge(r));n.setEdge(r,Object.assign({},mr,Ce(o,pr),W(o,Er)))}),n}function Lr(e){let n=e.graph();n.ranksep/=2,e.edges().forEach(t=>{var o;let r=e.edge(t);r.minlen*=2,((o=r.labelpos)!=null?o:"r").toLowerCase()!=="c"&&(n.rankdir==="TB"||n.rankdir==="BT"?r.width+=r.labeloffset:r.height+=r.labeloffset)})}function yr(e){e.edges().forEach(n=>{let t=e.edge(n);if(t.width&&t.height){let r=e.node(n.v),i={rank:(e.node(n.w).rank-r.rank)/2+r.rank,e:n};M(e,"edge-proxy",i,"_ep")}})}function wr(e){let n=0;e.nodes().forEach(t=>{let r=e.node(t);r.borderTop&&(r.minRank=e.node(r.borderTop).rank,r.maxRank=e.node(r.borderBottom).rank,n=Math.max(n,r.maxRank))}),e.graph().maxRank=n}function Nr(e){e.nodes().forEach(n=>{let t=e.node(n);if(t.dummy==="edge-proxy"){let r=t;e.edge(r.e).labelRank=t.rank,e.removeNode(n)}})}function Gr(e){let n=Number.POSITIVE_INFINITY,t=0,r=Number.POSITIVE_INFINITY,o=0,i=e.graph(),s=i.marginx||0,a=i.marginy||0;function l(u){let d=u.x,c=u.y,f=u.width,h=u.height;n=Math.min(n,d-f/2),t=Math.max(t,d+f/2),r=Math.min(r,c-h/2),o=Math.max(o,c+h/2)}e.nodes().forEach(u=>l(e.node(u))),e.edges().forEach(u=>{let d=e.edge(u);Object.hasOwn(d,"x")&&l(d)}),n-=s,r-=a,e.nodes().forEach(u=>{let d=e.node(u);d.x-=n,d.y-=r}),e.edges().forEach(u=>{let d=e.edge(u);d.points.forEach(c=>{c.x-=n,c.y-=r}),Object.hasOwn(d,"x")&&(d.x-=n),Object.hasOwn(d,"y")&&(d.y-=r)}),i.width=t-n+s,i.height=o-r+a}function vr(e){e.edges().forEach(n=>{if(n.v===n.w)return;let t=e.edge(n),r=e.node(n.v),o=e.node(n.w),i,s;t.points?(i=t.points[0],s=t.points[t.points.length-1]):(t.points=[],i=o,s=r),t.points.unshift(ue(r,i)),t.points.push(ue(o,s))})}function kr(e){e.edges().forEach(n=>{let t=e.edge(n);if(Object.hasOwn(t,"x"))switch((t.labelpos==="l"||t.labelpos==="r")&&(t.width-=t.labeloffset),t.labelpos){case"l":t.x-=t.width/2+t.labeloffset;break;case"r":t.x+=t.width/2+t.labeloffset;break}})}function xr(e){e.edges().forEach(n=>{let t=e.edge(n);t.reversed&&t.points.reverse()})}function _r(e){e.nodes().forEach(n=>{if(e.children(n).length){let t=e.node(n),r=e.node(t.borderTop),o=e.node(t.borderBottom),i=e.node(t.borderLeft[t.borderLeft.length-1]),s=e.node(t.borderRight[t.borderRight.length-1]);t.width=Math.abs(s.x-i.x),t.height=Math.abs(o.y-r.y),t.x=i.x+t.width/2,t.y=r.y+t.height/2}}),e.nodes().forEach(n=>{e.node(n).dummy==="border"&&e.removeNode(n)})}function Or(e){e.edges().forEach(n=>{if(n.v===n.w){let t=e.node(n.v);t.selfEdges||(t.selfEdges=[]),t.selfEdges.push({e:n,label:e.edge(n)}),e.removeEdge(n)}})}function Cr(e){P(e).forEach(t=>{let r=0;t.forEach((o,i)=>{let s=e.node(o);typeof s.rank!="number"&&(s.rank=0),s.order=i+r,(s.selfEdges||[]).forEach(a=>{M(e,"selfedge",{width:a.label.width,height:a.label.height,rank:s.rank,order:i+ ++r,e:a.e,edgeLabel:a.label},"_se"),(!Array.isArray(a.label.points)||a.label.points.length!==7)&&(a.label.points=[{x:0,y:-10},{x:0,y:-10},{x:0,y:0},{x:0,y:10},{x:0,y:10},{x:0,y:0},{x:0,y:0}])}),delete s.selfEdges})})}function Tr(e){e.nodes().forEach(n=>{let t=e.node(n),r=o=>typeof o=="number"&&isFinite(o);if(t.dummy==="selfedge"){let o=t,i=e.node(o.e.v),s=r(i==null?void 0:i.x)?i.x:0,a=r(i==null?void 0:i.y)?i.y:0,l=r(i==null?void 0:i.width)?i.width:0,u=r(i==null?void 0:i.height)?i.height:0,d=r(t.x)?t.x:s,c=r(t.y)?t.y:a,f=l/2,h=u/2;o.edgeLabel.points=[{x:d+f,y:c-h},{x:d+f,y:c-h},{x:d,y:c},{x:d-f,y:c+h},{x:d-f,y:c+h},{x:d,y:c},{x:d,y:c}],o.edgeLabel.x=d,o.edgeLabel.y=c,e.setEdge(o.e,o.edgeLabel),e.removeNode(n)}else t&&Array.isArray(t.selfEdges)&&t.selfEdges.forEach(o=>{if(!Array.isArray(o.label.points)||o.label.points.length!==7){let i=r(t.x)?t.x:0,s=r(t.y)?t.y:0,a=r(t.width)?t.width:0,l=r(t.height)?t.height:0,u=a/2,d=l/2;o.label.points=[{x:i+u,y:s-d},{x:i+u,y:s-d},{x:i,y:s},{x:i-u,y:s+d},{x:i-u,y:s+d},{x:i,y:s},{x:i,y:s}]}})})}function Ce(e,n){return X(W(e,n),Number)}function Te(e){let n={};return e&&Object.entries(e).forEach(([t,r])=>{typeof t=="string"&&(t=t.toLowerCase()),n[t]=r}),n}function de(e){let n=P(e),t=new T({compound:!0,multigraph:!0}).setGraph({});return e.nodes().forEach(r=>{t.setNode(r,{label:r}),t.setParent(r,"layer"+e.node(r).rank)}),e.edges().forEach(r=>t.setEdge(r.v,r.w,{},r.name)),n.forEach((r,o)=>{let i="layer"+o;t.setNode(i,{rank:"same"}),r.reduce((s,a)=>(t.setEdge(s,a,{style:"invis"}),a))}),t}var jr={time:he,notime:q},Rr={graphlib:ee,version:re,layout:ae,debug:de,util:{time:he,notime:q}},Ir=Rr;return Vn(Sr);})();
/*! For license information please see dagre.min.js.LEGAL.txt */
(() => {
"use strict";
// colours.js
const module_colours = (() => {
// Colours that people with colour-blindness tell apart: six of Okabe and Ito for kinds, two more that stay apart from these on white and on black (a test simulates it), a ramp for amounts.
//
// The ramp is computed in OKLCH: its lightness rises evenly from end to end, so that it also reads without any hue.

const KIND_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#993311", "#ddccaa"];

function kind(number) {
  return KIND_COLOURS[number % KIND_COLOURS.length];
}

const KINDS = KIND_COLOURS.length;

const RAMP = Array.from({ length: 65 }, (_, step) => step / 64).map((share) =>
  oklch(0.34 + 0.56 * share, 0.1 + 0.05 * Math.sin(Math.PI * share), 285 - 190 * share),
);

// `share` from 0 to 1; beyond it is cut off.
function ramp(share) {
  const place = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 1));
  return RAMP[Math.round(place * (RAMP.length - 1))];
}

function rampSteps(steps) {
  return Array.from({ length: steps }, (_, step) => ramp(step / (steps - 1)));
}

// Text over a colour: whichever of black and white has more contrast.
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255).map(linear);
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return luminance > 0.18 ? "#10141a" : "#ffffff";
}

function withAlpha(colour, alpha) {
  return colour + Math.round(alpha * 255).toString(16).padStart(2, "0");
}

function linear(value) {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function oklch(lightness, chroma, degrees) {
  const hue = (degrees * Math.PI) / 180;
  const [a, b] = [chroma * Math.cos(hue), chroma * Math.sin(hue)];
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return `#${[
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ].map(channel).join("")}`;
}

function channel(value) {
  const cut = Math.max(0, Math.min(1, value));
  const encoded = cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055;
  return Math.round(255 * encoded).toString(16).padStart(2, "0");
}
return { kind, KINDS, ramp, rampSteps, inkOn, withAlpha };
})();

// dom.js
const module_dom = (() => {
// Elements are made here and nowhere else: text is set as text, so that no name from a file is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

// Makes an element. `properties`: attributes, and three words of its own: `text`, `on` ({event: listener}), `data`.
// An attribute that is null, undefined or false is left out. Children that are strings become text nodes.
function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "style" || name.startsWith("on")) throw new Error(`no ${name} as an attribute: the policy forbids it`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return parent;
}

// A place for what a screen reader should say when it changes.
function announcer() {
  return h("div", { class: "visually-hidden", role: "status", "aria-live": "polite" });
}

// What a view shows where there is nothing: what is missing, and the command that would bring it.
function empty(title, words, command) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title", text: title }), h("p", { text: words }),
    command ? h("code", { class: "command", text: command }) : null);
}

function definition(pairs) {
  const list = h("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(h("dt", { text: name }), h("dd", {}, value instanceof Node ? value : document.createTextNode(String(value))));
  }
  return list;
}

let lastId = 0;

function freshId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}
return { h, svg, replace, announcer, empty, definition, freshId };
})();

// format.js
const module_format = (() => {
// Numbers with their units, as people read them. Every number of the page goes through here.

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function count(value) {
  return WHOLE.format(value);
}

function digits(value, most = 3) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size >= most - 1) return WHOLE.format(value);
  if (size < -4) return value.toExponential(most - 1);
  return value.toFixed(Math.min(12, most - 1 - size)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 10240) return `${WHOLE.format(value)} B`;
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (size >= factor) return `${digits(value / factor)} ${unit}`;
  }
  return `${WHOLE.format(value)} B`;
}

function exactBytes(value) {
  return Math.abs(value ?? 0) < 10240 ? bytes(value) : `${bytes(value)} (${WHOLE.format(value)} B)`;
}

function micros(value) {
  if (value === null || value === undefined) return "–";
  const length = Math.abs(value);
  if (length >= 1e6) return `${digits(value / 1e6, 4)} s`;
  if (length >= 1e4) return `${digits(value / 1e3, 4)} ms`;
  return `${digits(value, 4)} µs`;
}

function microsWithin(value, share) {
  return share ? `${micros(value)} ± ${Math.round(share * 100)} %` : micros(value);
}

function flops(value) {
  if (!value) return "0 flop";
  for (const [unit, factor] of [["Tflop", 1e12], ["Gflop", 1e9], ["Mflop", 1e6], ["kflop", 1e3]]) {
    if (value >= factor) return `${digits(value / factor)} ${unit}`;
  }
  return `${WHOLE.format(value)} flop`;
}

function ratio(value) {
  return value === null || value === undefined ? "–" : `${digits(value)} ×`;
}

function percent(value) {
  return `${digits(100 * value)} %`;
}

function address(value) {
  return value === null || value === undefined ? "–" : `0x${value.toString(16)}`;
}

// 0-29, 31
function ranges(numbers) {
  const spans = [];
  for (const number of numbers) {
    const last = spans[spans.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else spans.push([number, number]);
  }
  return spans.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(", ");
}

function shape(sizes) {
  return sizes && sizes.length ? sizes.join(" × ") : "scalar";
}

function plural(number, word, many = `${word}s`) {
  return `${WHOLE.format(number)} ${number === 1 ? word : many}`;
}
return { count, digits, bytes, exactBytes, micros, microsWithin, flops, ratio, percent, address, ranges, shape, plural };
})();

// graph_layout.js
const module_graph_layout = (() => {
// Where the nodes of the graph stand: dagre for what people can read at once, layers in a grid for what they cannot.

const NODE = { width: 168, height: 40 };
const GAP = { across: 24, down: 40 };
const MOST_FOR_DAGRE = 260;

// `nodes`: [{id, group}], `edges`: [[from, to]], `groups`: [{id, parent, title}]. Returns {nodes: Map id -> {x, y, w, h}, groups: Map, edges, width, height}.
function layOut(nodes, edges, groups) {
  return nodes.length <= MOST_FOR_DAGRE ? byDagre(nodes, edges, groups) : byLayers(nodes, edges, groups);
}

function byDagre(nodes, edges, groups) {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ ranksep: GAP.down, nodesep: GAP.across, marginx: 16, marginy: 16, ranker: nodes.length > 120 ? "longest-path" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  const used = new Set(nodes.map((node) => node.group).filter((group) => group !== null));
  const byId = new Map(groups.map((group) => [group.id, group]));
  for (const id of [...used]) for (let at = byId.get(id); at; at = byId.get(at.parent)) used.add(at.id);
  for (const id of used) graph.setNode(`g${id}`, { label: "" });
  for (const id of used) if (byId.get(id).parent !== null) graph.setParent(`g${id}`, `g${byId.get(id).parent}`);
  for (const node of nodes) {
    graph.setNode(`n${node.id}`, { ...NODE, ...(node.size ?? {}) });
    if (node.group !== null) graph.setParent(`n${node.id}`, `g${node.group}`);
  }
  edges.forEach(([from, to]) => graph.setEdge(`n${from}`, `n${to}`));
  dagre.layout(graph);
  const box = ({ x, y, width, height }) => ({ x: x - width / 2, y: y - height / 2, w: width, h: height });
  const found = { nodes: new Map(), groups: new Map(), edges: [], width: graph.graph().width, height: graph.graph().height };
  for (const node of nodes) found.nodes.set(node.id, box(graph.node(`n${node.id}`)));
  for (const id of used) {
    const place = box(graph.node(`g${id}`));
    found.groups.set(id, { x: place.x, y: place.y - 12, w: place.w, h: place.h + 12 });
  }
  for (const [from, to] of edges) found.edges.push({ from, to, points: graph.edge(`n${from}`, `n${to}`).points });
  return found;
}

// Layers by the longest path; groups one below the other, each in a frame of its own, so that nothing crosses their borders.
function byLayers(nodes, edges, groups) {
  const into = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) into.get(to)?.push(from);
  const layer = new Map();
  const seat = new Map();
  const found = { nodes: new Map(), groups: new Map(), edges: [], width: 0, height: 0 };
  let top = 16;
  const rows = [];
  let previous = null;
  for (const node of nodes) {
    const sources = (into.get(node.id) ?? []).filter((id) => layer.has(id));
    const isNew = node.group !== previous;
    const least = isNew ? rows.length : Math.max(rows.length - 1, 0);
    const at = Math.max(least - (isNew ? 0 : 3), ...sources.map((id) => layer.get(id) + 1), isNew ? rows.length : 0);
    previous = node.group;
    layer.set(node.id, at);
    while (rows.length <= at) rows.push([]);
    rows[at].push(node.id);
  }
  for (const row of rows) {
    row.sort((one, other) => middle(one) - middle(other));
    row.forEach((id, place) => {
      seat.set(id, place - (row.length - 1) / 2);
      found.nodes.set(id, { x: seat.get(id) * (NODE.width + GAP.across), y: top, w: NODE.width, h: NODE.height });
    });
    top += row.length ? NODE.height + GAP.down : 0;
  }
  function middle(id) {
    const sources = (into.get(id) ?? []).filter((source) => seat.has(source));
    return sources.length ? sources.reduce((sum, source) => sum + seat.get(source), 0) / sources.length : 0;
  }
  const left = Math.min(...[...found.nodes.values()].map((place) => place.x)) - 40;
  for (const place of found.nodes.values()) place.x -= left;
  found.width = Math.max(...[...found.nodes.values()].map((place) => place.x + place.w)) + 40;
  found.height = top + 16;
  const parents = new Map(groups.map((group) => [group.id, group.parent]));
  const depth = (id) => (id === null || id === undefined ? 0 : 1 + depth(parents.get(id)));
  for (const node of nodes) {
    const place = found.nodes.get(node.id);
    for (let id = node.group; id !== null && id !== undefined; id = parents.get(id)) {
      const frame = found.groups.get(id) ?? { x: Infinity, y: Infinity, right: -Infinity, bottom: -Infinity };
      const pad = 12;
      found.groups.set(id, { x: Math.min(frame.x, place.x - pad), y: Math.min(frame.y, place.y - 22), right: Math.max(frame.right, place.x + place.w + pad), bottom: Math.max(frame.bottom, place.y + place.h + pad) });
    }
  }
  for (const [id, frame] of found.groups) found.groups.set(id, { x: frame.x, y: frame.y, w: frame.right - frame.x, h: frame.bottom - frame.y, depth: depth(id) });
  for (const [from, to] of edges) {
    const [one, other] = [found.nodes.get(from), found.nodes.get(to)];
    if (one && other) found.edges.push({ from, to, points: [{ x: one.x + one.w / 2, y: one.y + one.h }, { x: other.x + other.w / 2, y: other.y }] });
  }
  return found;
}
return { layOut };
})();

// model.js
const module_model = (() => {
// The report as it is read: what was left out of the JSON is filled in, and what points at what is found both ways.

const LISTS = ["programs", "loops", "host_steps", "modules", "ops", "tensors", "outputs", "decisions", "strings", "texts", "handles", "notes"];

function readReport() {
  return prepare(JSON.parse(document.getElementById("report-data").textContent));
}

function prepare(data) {
  const report = { ...data };
  for (const name of LISTS) report[name] ??= [];
  report.totals = numbers(report.totals ?? {}, ["us", "read", "written", "core_read", "bound", "flops", "ring", "executions", "lx_peak"]);
  report.memory = { lx: [], pools: [], segments: [], ...(data.memory ?? {}) };
  report.time = { engines: [], waits: [], patterns: [], schedule: [], copies: [], ...(data.time ?? {}), us: data.time?.us ?? 0 };
  report.ops.forEach((op, id) => fillOp(op, id));
  report.tensors.forEach((tensor, id) => {
    Object.assign(tensor, { id, shape: tensor.shape ?? [], writers: tensor.writers ?? [], readers: tensor.readers ?? [], decisions: tensor.decisions ?? [] });
    numbers(tensor, ["size", "read", "written"]);
    if (tensor.address !== undefined) tensor.segment ??= 0;
  });
  report.loops.forEach((loop, id) => numbers(Object.assign(loop, { id }), ["us", "read", "written"]));
  report.programs.forEach((program, id) => numbers(Object.assign(program, { id }), ["us", "pool_bytes"]));
  report.decisions.forEach((item, id) => numbers(Object.assign(item, { id, ops: item.ops ?? [] }), ["saved_bytes", "saved_us"]));
  for (const item of report.decisions) item.considered ??= [];
  report.texts.forEach((text, id) => Object.assign(text, { id, from: text.from ?? [], ops: text.ops ?? [] }));
  for (const map of [...report.memory.lx, ...report.memory.pools]) map.regions ??= [];
  const run = report.run;
  if (run) {
    for (const name of ["checks", "compares", "findings"]) run[name] ??= [];
    run.findings.forEach((finding, id) => Object.assign(finding, { id, details: finding.details ?? [] }));
  }
  if (report.against) {
    for (const name of ["pairs", "only", "moved", "facts"]) report.against[name] ??= [];
    numbers(report.against.totals, ["us", "read", "written", "core_read", "bound", "flops", "executions", "lx_peak"]);
  }
  return report;
}

function fillOp(op, id) {
  Object.assign(op, {
    id, loops: op.loops ?? [], cores: op.cores ?? [], dims: op.dims ?? [], inputs: op.inputs ?? [], outputs: op.outputs ?? [], decisions: op.decisions ?? [],
  });
  numbers(op, ["executions", "us", "read", "written", "core_read", "flops", "ring", "bound", "start_us"]);
  op.moved = op.read + op.written;
  op.excess = op.moved - op.bound;
  op.coreCount = op.cores.reduce((sum, [first, past]) => sum + past - first, 0);
}

function numbers(record, names) {
  for (const name of names) record[name] ??= 0;
  return record;
}

function coreList(spans) {
  return spans.flatMap(([first, past]) => Array.from({ length: past - first }, (_, step) => first + step));
}

function coreText(spans) {
  return spans.map(([first, past]) => (past - first === 1 ? String(first) : `${first}–${past - 1}`)).join(", ") || "none";
}

function hasCore(spans, core) {
  return spans.some(([first, past]) => first <= core && core < past);
}

function opTitle(report, id) {
  const op = report.ops[id];
  return op ? `${id} ${op.op} → ${op.name}` : "nobody";
}

function memoryWord(memory) {
  return {
    argument: "device memory (argument)", pool: "device memory (pool)", program: "device memory (program)", segment: "device memory (segment)",
    lx: "LX", symbol: "given by the launch",
  }[memory] ?? memory ?? "not known";
}

// An operation by number, name or file, as an address may have it.
function findOp(report, word) {
  if (word === undefined || word === null) return null;
  if (/^\d+$/.test(word)) return Number(word) < report.ops.length ? Number(word) : null;
  const at = report.ops.findIndex((op) => op.name === word || op.file === word || op.node === word);
  return at < 0 ? null : at;
}

function findTensor(report, word) {
  if (word === undefined || word === null) return null;
  if (/^\d+$/.test(word)) return Number(word) < report.tensors.length ? Number(word) : null;
  const at = report.tensors.findIndex((tensor) => tensor.name === word);
  return at < 0 ? null : at;
}

// The largest error over its bound that a run found at an operation; null where nothing of it was compared.
function errorOf(report, id) {
  const run = report.run;
  if (!run) return null;
  const ratios = run.checks.filter((check) => report.outputs[check.output]?.op === id).map((check) => Number(check.bound_ratio));
  if (run.bisect?.worst_op === id && run.bisect.worst_ratio !== undefined) ratios.push(Number(run.bisect.worst_ratio));
  if (run.bisect?.op === id && run.bisect.error !== undefined && run.bisect.bound) ratios.push(Number(run.bisect.error) / Number(run.bisect.bound));
  const known = ratios.filter((value) => !Number.isNaN(value));
  return known.length ? Math.max(...known) : null;
}
return { readReport, prepare, coreList, coreText, hasCore, opTitle, memoryWord, findOp, findTensor, errorOf };
})();

// state.js
const module_state = (() => {
// What is shown stands in the address, so that a link shows the same: #view=memory&op=12. Views listen.

const listeners = new Set();
let current = read();

function read() {
  const found = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) found[name] = value;
  return found;
}

function state() {
  return current;
}

// Changes some of the state; a value of null takes its name away. Each change is a step that "back" undoes.
function go(changes) {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") delete next[name];
    else next[name] = String(value);
  }
  const hash = hashOf(next);
  if (hash === hashOf(current)) return;
  history.pushState(null, "", hash);
  settle(next);
}

function linkTo(changes) {
  return location.href.split("#")[0] + hashOf({ ...current, ...changes });
}

function listen(listener) {
  listeners.add(listener);
}

function hashOf(values) {
  return `#${new URLSearchParams(Object.entries(values))}`;
}

function settle(next) {
  const before = current;
  current = next;
  for (const listener of listeners) listener(current, before);
}

window.addEventListener("popstate", () => {
  if (hashOf(read()) !== hashOf(current)) settle(read());
});
return { state, go, linkTo, listen };
})();

// layouts.js
const module_layouts = (() => {
// Where an element of a tensor lies on the device, and which element lies at an address.
//
// Device memory is row-major over `device_size`, the last dim being a stick of 128 bytes. A device dim of stride s steps over
// host elements; neighbouring host dims that one device dim walks through together are one run.

const STICK_BYTES = 128;

class Layout {
  constructor(tensor) {
    const { device_size: sizes, stride_map: strides, host_strides: given } = tensor.layout;
    this.sizes = sizes;
    this.strides = strides ?? sizes.map(() => -1);
    this.shape = tensor.shape;
    this.hostStrides = given ?? rowMajor(this.shape);
    this.word = STICK_BYTES / sizes[sizes.length - 1];
    this.deviceStrides = rowMajor(sizes);
    this.nbytes = sizes.reduce((product, extent) => product * extent, 1) * this.word;
    this.runs = findRuns(this);
  }

  // The device coordinate of a host index; null where the layout tells no place.
  coordinate(index) {
    const found = this.sizes.map(() => 0);
    for (const run of this.runs) {
      let rest = 0;
      for (const dim of run.dims) rest = rest * this.shape[dim] + index[dim];
      for (const { device, step } of run.tiles) {
        found[device] = Math.floor(rest / step);
        rest -= found[device] * step;
      }
      if (rest) return null;
    }
    return found.every((entry, dim) => entry < this.sizes[dim]) ? found : null;
  }

  // The host index of a device coordinate; null for padding.
  index(coordinate) {
    const found = this.shape.map(() => 0);
    for (const run of this.runs) {
      let place = run.tiles.reduce((sum, { device, step }) => sum + coordinate[device] * step, 0);
      for (const dim of [...run.dims].reverse()) {
        found[dim] = place % this.shape[dim];
        place = Math.floor(place / this.shape[dim]);
      }
      if (place) return null;
    }
    const home = this.coordinate(found);
    return home && home.every((entry, dim) => entry === coordinate[dim] || this.strides[dim] === 0) ? found : null;
  }

  address(coordinate) {
    const offset = coordinate.reduce((sum, entry, dim) => sum + entry * this.deviceStrides[dim], 0);
    return Math.floor(offset * this.word);
  }

  at(address) {
    let rest = Math.floor(address / this.word);
    return this.deviceStrides.map((stride) => {
      const entry = Math.floor(rest / stride);
      rest -= entry * stride;
      return entry;
    });
  }
}

function rowMajor(sizes) {
  const strides = sizes.map(() => 1);
  for (let dim = sizes.length - 2; dim >= 0; dim -= 1) strides[dim] = strides[dim + 1] * sizes[dim + 1];
  return strides;
}

// Host dims, outer ones first; a device dim belongs to the innermost host dim whose stride it does not undercut.
function findRuns(layout) {
  const dims = layout.shape.map((extent, dim) => ({ dim, extent, stride: layout.hostStrides[dim] })).filter((item) => item.extent > 1);
  dims.sort((one, other) => other.stride - one.stride);
  const runs = dims.map((item) => ({ dims: [item.dim], stride: item.stride, length: item.extent, tiles: [] }));
  layout.strides.forEach((stride, device) => {
    if (stride <= 0 || (layout.sizes[device] === 1 && !dims.some((item) => item.stride === stride))) return;
    const run = runs.find((item) => item.stride <= stride);
    if (run && layout.sizes[device] > 1) run.tiles.push({ device, stride });
  });
  for (let place = 0; place < runs.length - 1; ) {
    const [outer, inner] = [runs[place], runs[place + 1]];
    const isApart = outer.tiles.length && outer.tiles.every(({ stride }) => stride % outer.stride === 0) && outer.tiles.some(({ stride }) => stride === outer.stride);
    if (isApart || outer.stride !== inner.length * inner.stride) place += 1;
    else {
      runs.splice(place, 2, { dims: [...outer.dims, ...inner.dims], stride: inner.stride, length: outer.length * inner.length, tiles: [...outer.tiles, ...inner.tiles] });
      place = Math.max(0, place - 1);
    }
  }
  for (const run of runs) {
    run.tiles.sort((one, other) => other.stride - one.stride || layout.sizes[one.device] - layout.sizes[other.device]);
    for (const tile of run.tiles) tile.step = tile.stride / run.stride;
  }
  return runs;
}
return { Layout };
})();

// lineage.js
const module_lineage = (() => {
// What a line comes from and what came of it: walks over the texts, forward by a table that is made once.

class Lineage {
  constructor(report) {
    this.texts = report.texts;
    this.children = this.texts.map(() => []);
    for (const text of this.texts) if (text.of !== undefined && text.of !== null) this.children[text.of].push(text.id);
    this.forward = new Map();
  }

  from(text, line) {
    const found = this.texts[text].from[line];
    if (found === null || found === undefined) return [];
    return Array.isArray(found) ? found : [found];
  }

  opsOf(text, line) {
    const found = this.texts[text].ops[line];
    if (found === null || found === undefined) return [];
    return Array.isArray(found) ? found : [found];
  }

  // Lines of a text by the line that they come from.
  linesFrom(text) {
    if (!this.forward.has(text)) {
      const table = new Map();
      this.texts[text].from.forEach((_, line) => {
        for (const parent of this.from(text, line)) {
          if (!table.has(parent)) table.set(parent, []);
          table.get(parent).push(line);
        }
      });
      this.forward.set(text, table);
    }
    return this.forward.get(text);
  }

  // Marks all relatives of lines: a map per text from line to "self", "ancestor" or "descendant".
  relatives(starts) {
    const marks = this.texts.map(() => new Map());
    for (const [text, line] of starts) {
      this.climb(text, [line], marks);
      this.descend(text, [line], marks);
    }
    for (const [text, line] of starts) marks[text].set(line, "self");
    return marks;
  }

  climb(text, lines, marks) {
    let [at, here] = [text, lines];
    while (this.texts[at].of !== undefined && this.texts[at].of !== null && here.length) {
      const parents = [...new Set(here.flatMap((line) => this.from(at, line)))];
      at = this.texts[at].of;
      for (const line of parents) if (!marks[at].has(line)) marks[at].set(line, "ancestor");
      here = parents;
    }
  }

  descend(text, lines, marks) {
    for (const child of this.children[text]) {
      const table = this.linesFrom(child);
      const found = [...new Set(lines.flatMap((line) => table.get(line) ?? []))];
      for (const line of found) if (!marks[child].has(line)) marks[child].set(line, "descendant");
      if (found.length) this.descend(child, found, marks);
    }
  }

  // The lines of products that are about an operation, and of each text that names it.
  linesOfOp(op) {
    if (!this.byOp) {
      this.byOp = new Map();
      for (const text of this.texts) {
        text.ops.forEach((_, line) => {
          for (const id of this.opsOf(text.id, line)) {
            if (!this.byOp.has(id)) this.byOp.set(id, []);
            this.byOp.get(id).push([text.id, line]);
          }
        });
      }
    }
    return this.byOp.get(op) ?? [];
  }

  // The operations of a line, of what came of it, or else of what it comes from directly.
  opsAround(text, line) {
    const found = new Set(this.opsOf(text, line));
    if (!found.size) {
      const marks = this.texts.map(() => new Map());
      this.descend(text, [line], marks);
      marks.forEach((lines, id) => {
        for (const other of lines.keys()) for (const op of this.opsOf(id, other)) found.add(op);
      });
    }
    return [...found].sort((one, other) => one - other);
  }
}
return { Lineage };
})();

// schedule.js
const module_schedule = (() => {
// The order of execution as a tree with times: loops are not written out, any moment is found by dividing.

class Schedule {
  constructor(report) {
    this.report = report;
    const pattern = (op) => report.time.patterns[report.ops[op].pattern];
    const build = (step, start) => {
      if (step.op !== undefined) return { op: step.op, start, us: pattern(step.op)?.us ?? 0 };
      const count = step.loop !== undefined ? Number(step.count) : 1;
      let at = 0;
      const body = (step.body ?? []).map((item) => {
        const made = build(item, at);
        at += made.us;
        return made;
      });
      return { loop: step.loop, program: step.program, count, body, round: at, start, us: at * count };
    };
    let at = 0;
    this.body = report.time.schedule.map((step) => {
      const made = build(step, at);
      at += made.us;
      return made;
    });
    this.us = at;
  }

  // The execution at a moment: {op, start, us, rounds: [{loop, round}], program}; null beyond the end.
  at(moment) {
    let [body, base, inside] = [this.body, 0, moment];
    const rounds = [];
    let program = null;
    for (;;) {
      const item = body.find((step) => inside >= step.start && inside < step.start + step.us);
      if (!item) return null;
      base += item.start;
      inside -= item.start;
      if (item.op !== undefined) return { op: item.op, start: base, us: item.us, rounds, program };
      if (item.program !== undefined) program = item.program;
      const round = Math.min(item.count - 1, Math.floor(inside / item.round));
      if (item.loop !== undefined) rounds.push({ loop: item.loop, round, count: item.count });
      base += round * item.round;
      inside -= round * item.round;
      body = item.body;
    }
  }

  // Calls `execution({op, start, us})` for what is seen between two moments, `block(start, us, step)` for what is too short to be told apart.
  walk(from, to, least, execution, block) {
    const visit = (body, base) => {
      for (const item of body) {
        const start = base + item.start;
        if (start + item.us < from || start > to) continue;
        if (item.op !== undefined) execution({ op: item.op, start, us: item.us });
        else if (item.us < least || (item.count > 1 && item.round < least)) block(start, item.us, item);
        else {
          const first = Math.max(0, Math.floor((from - start) / item.round));
          const last = Math.min(item.count - 1, Math.floor((to - start) / item.round));
          for (let round = first; round <= last; round += 1) visit(item.body, start + round * item.round);
        }
      }
    };
    visit(this.body, 0);
  }

  startOf(op) {
    const seek = (body, base) => {
      for (const item of body) {
        if (item.op === op) return base + item.start;
        if (item.body) {
          const found = seek(item.body, base + item.start);
          if (found !== null) return found;
        }
      }
      return null;
    };
    return seek(this.body, 0);
  }
}

// What each engine of a core does at a moment of an execution: [{engine, doing: "works" | "waits" | "idle", why}].
function doingAt(report, op, core, moment, covers) {
  const pattern = report.time.patterns[report.ops[op].pattern];
  const group = pattern?.groups.find((item) => covers(item.cores, core));
  if (!group) return null;
  return report.time.engines.map((engine, number) => {
    const span = (group.spans ?? []).find(([of, first, last]) => of === number && first <= moment && moment < last);
    if (span) return { engine, doing: "works", first: span[1], last: span[2] };
    const wait = (group.waits ?? []).find(([of, first, last]) => of === number && first <= moment && moment < last);
    return wait ? { engine, doing: "waits", why: report.time.waits[wait[3]], first: wait[1], last: wait[2] } : { engine, doing: "idle" };
  });
}
return { Schedule, doingAt };
})();

// tabs.js
const module_tabs = (() => {
// Tabs as the ARIA practices describe them: one stop of the Tab key, arrows move, Home and End jump.

const { freshId, h } = module_dom;

// `items`: [{key, title, badge?}]; `chosen` is told a key. Returns {bar, panel, select}.
function tabs(label, items, chosen, className = "tabs") {
  const panel = h("div", { class: "tab-panel", role: "tabpanel", id: freshId("panel") });
  const buttons = items.map((item) =>
    h("button", {
      type: "button", role: "tab", id: freshId("tab"), class: "tab", "aria-controls": panel.id, "aria-selected": "false",
      tabindex: "-1", data: { key: item.key }, on: { click: () => chosen(item.key) },
    }, h("span", { text: item.title }), item.badge ? h("span", { class: "badge", text: item.badge }) : null));
  const bar = h("div", { class: className, role: "tablist", "aria-label": label, on: { keydown: (event) => move(event) } }, buttons);

  function move(event) {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const button = buttons[(to + buttons.length) % buttons.length];
    button.focus();
    chosen(button.dataset.key);
  }

  function select(key) {
    for (const button of buttons) {
      const isChosen = button.dataset.key === key;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
      if (isChosen) panel.setAttribute("aria-labelledby", button.id);
    }
  }

  return { bar, panel, select };
}

// A row of buttons of which one is pressed.
function choice(label, items, chosen, first) {
  const group = h("div", { class: "choice", role: "radiogroup", "aria-label": label });
  const buttons = items.map(([key, title]) =>
    h("button", { type: "button", role: "radio", class: "choice-item", data: { key }, text: title, on: { click: () => pick(key) } }));
  group.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (at < 0 || !step) return;
    event.preventDefault();
    const button = buttons[(at + step + buttons.length) % buttons.length];
    button.focus();
    pick(button.dataset.key);
  });
  function mark(key) {
    for (const button of buttons) {
      button.setAttribute("aria-checked", String(button.dataset.key === key));
      button.tabIndex = button.dataset.key === key ? 0 : -1;
    }
  }
  function pick(key) {
    mark(key);
    chosen(key);
  }
  group.append(h("span", { class: "choice-label", text: label }), ...buttons);
  mark(first ?? items[0][0]);
  group.mark = mark;
  return group;
}
return { tabs, choice };
})();

// tooltip.js
const module_tooltip = (() => {
// One tooltip for the whole page: by pointer, by keyboard focus, gone with Escape.

const { h, replace } = module_dom;

const box = h("div", { class: "tooltip", role: "tooltip", id: "tooltip", hidden: true });
let owner = null;

function mountTooltip() {
  document.body.append(box);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTooltip();
  });
  const begin = (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (target) {
      const place = target.getBoundingClientRect();
      showTooltip({ title: target.dataset.tip, lines: [] }, place.left + place.width / 2, place.bottom, target);
    } else if (owner instanceof Element && owner.dataset.tip) hideTooltip();
  };
  document.addEventListener("pointerover", begin);
  document.addEventListener("focusin", begin);
  document.addEventListener("focusout", () => hideTooltip());
}

// `content`: {title, lines: [[name, value] | text]}; `x`, `y`: the place in the window that it stands beside.
function showTooltip(content, x, y, by = null) {
  owner = by;
  replace(box, h("p", { class: "tooltip-title", text: content.title }), content.lines.map((line) =>
    Array.isArray(line)
      ? h("p", { class: "tooltip-line" }, h("span", { class: "tooltip-name", text: line[0] }), h("span", { text: line[1] }))
      : h("p", { class: "tooltip-text", text: line })));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = x + 14 + width > window.innerWidth - 8 ? x - width - 14 : x + 14;
  const top = y + 14 + height > window.innerHeight - 8 ? y - height - 10 : y + 14;
  box.style.left = `${Math.max(8, Math.min(left, window.innerWidth - width - 8))}px`;
  box.style.top = `${Math.max(8, top)}px`;
}

function hideTooltip() {
  box.hidden = true;
  owner = null;
}
return { mountTooltip, showTooltip, hideTooltip };
})();

// virtual.js
const module_virtual = (() => {
// Lists of which only the rows in sight are elements: a hundred thousand lines scroll as ten do.

const { freshId, h } = module_dom;

const BEYOND = 8;

// `render(element, index)` fills a row; `activate(index)` is told of a click or Enter. Arrows, Page, Home and End move.
class VirtualList {
  constructor({ label, rowHeight, count, render, activate, className = "", role = "listbox", rowRole = "option" }) {
    Object.assign(this, { rowHeight, count, render, activate, rowRole });
    this.active = -1;
    this.rows = new Map();
    this.spare = [];
    this.stem = freshId("row");
    this.space = h("div", { class: "virtual-space", role: "presentation" });
    this.element = h("div", {
      class: `virtual ${className}`, role, tabindex: "0", "aria-label": label,
      on: { scroll: () => this.draw(), keydown: (event) => this.key(event), click: (event) => this.click(event) },
    }, this.space);
    new ResizeObserver(() => this.draw()).observe(this.element);
    this.resize(count);
  }

  resize(count) {
    this.count = count;
    this.space.style.height = `${count * this.rowHeight}px`;
    if (this.active >= count) this.active = -1;
    this.redraw();
  }

  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop;
    const height = this.element.clientHeight || 400;
    const first = Math.max(0, Math.floor(top / this.rowHeight) - BEYOND);
    const past = Math.min(this.count, Math.ceil((top + height) / this.rowHeight) + BEYOND);
    for (const [index, row] of this.rows) {
      if (index < first || index >= past) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < past; index += 1) {
      if (this.rows.has(index)) continue;
      const row = h("div", {
        class: "virtual-row", role: this.rowRole, id: `${this.stem}-${index}`, data: { index },
        "aria-setsize": this.rowRole === "option" ? this.count : null, "aria-posinset": this.rowRole === "option" ? index + 1 : null,
        "aria-rowindex": this.rowRole === "row" ? index + 2 : null,
      });
      row.style.top = `${index * this.rowHeight}px`;
      row.style.height = `${this.rowHeight}px`;
      row.classList.toggle("is-active", index === this.active);
      this.render(row, index);
      this.rows.set(index, row);
      this.space.append(row);
    }
    if (this.rows.has(this.active)) this.element.setAttribute("aria-activedescendant", `${this.stem}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  show(index, how = "nearest") {
    const top = index * this.rowHeight;
    const height = this.element.clientHeight || 400;
    const sight = this.element.scrollTop;
    if (how === "nearest" && top >= sight && top + this.rowHeight <= sight + height) return;
    this.element.scrollTop = how === "center" || top < sight - height || top > sight + 2 * height
      ? top - height / 2 + this.rowHeight
      : top < sight ? top : top + this.rowHeight - height;
    this.draw();
  }

  setActive(index, how) {
    this.rows.get(this.active)?.classList.remove("is-active");
    this.active = index;
    if (index >= 0) {
      this.show(index, how);
      this.rows.get(index)?.classList.add("is-active");
    }
    this.draw();
  }

  click(event) {
    const row = event.target.closest(".virtual-row");
    if (!row) return;
    this.setActive(Number(row.dataset.index));
    this.activate(this.active, event);
  }

  key(event) {
    if (event.target !== this.element || !this.count) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const to = {
      ArrowDown: this.active + 1, ArrowUp: Math.max(0, this.active - 1), PageDown: this.active + page, PageUp: this.active - page,
      Home: 0, End: this.count - 1,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.setActive(Math.max(0, Math.min(this.count - 1, to)));
    } else if ((event.key === "Enter" || event.key === " ") && this.active >= 0) {
      event.preventDefault();
      this.activate(this.active, event);
    }
  }
}
return { VirtualList };
})();

// parts.js
const module_parts = (() => {
// Small parts that several views show: cards, figures, links to operations and tensors, legends.

const { rampSteps } = module_colours;
const { h } = module_dom;
const { opTitle } = module_model;
const { go } = module_state;

function card(title, note, ...children) {
  return h("section", { class: "card is-flex", "aria-label": title },
    h("div", { class: "card-head" }, h("h2", { text: title }), note ? h("p", { text: note }) : null), children);
}

function cardBody(...children) {
  return h("div", { class: "card-body" }, children);
}

function tile(name, value, more, tone = "") {
  return h("div", { class: `tile ${tone}` }, h("span", { class: "tile-name", text: name }), h("span", { class: "tile-value", text: value }),
    more ? h("span", { class: "tile-more", text: more }) : null);
}

function opLink(report, id) {
  return h("button", { type: "button", class: "button-link", text: opTitle(report, id), on: { click: () => go({ op: id, tensor: null }) } });
}

function tensorLink(report, id) {
  const tensor = report.tensors[id];
  return h("button", { type: "button", class: "button-link", text: tensor ? tensor.name : "?", on: { click: () => go({ tensor: id, op: null }) } });
}

function button(text, act, tip = null) {
  return h("button", { type: "button", class: "button", text, data: tip ? { tip } : {}, on: { click: act } });
}

function legend(items) {
  return h("div", { class: "legend" }, items.map(([colour, text]) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.backgroundColor = colour;
    return h("span", { class: "legend-item" }, swatch, h("span", { text }));
  }));
}

function rampLegend(low, high) {
  return h("span", { class: "ramp legend" }, h("span", { text: low }), h("span", { class: "ramp-bar", "aria-hidden": "true" }, rampSteps(12).map((colour) => {
    const step = h("span");
    step.style.backgroundColor = colour;
    return step;
  })), h("span", { text: high }));
}

function field(label, control) {
  return h("label", { class: "field" }, h("span", { text: label }), control);
}

function select(options, chosen, changed) {
  const control = h("select", { on: { change: () => changed(control.value) } }, options.map(([value, text]) => h("option", { value, text })));
  control.value = String(chosen);
  return control;
}

function numberInput(value, { min = 0, max = null, step = "any" }, changed) {
  const control = h("input", { type: "number", min, max, step, on: { change: () => changed(Number(control.value)) } });
  control.value = String(value);
  return control;
}

function pill(text, tone = "") {
  return h("span", { class: `pill ${tone}`, text });
}
return { card, cardBody, tile, opLink, tensorLink, button, legend, rampLegend, field, select, numberInput, pill };
})();

// search.js
const module_search = (() => {
// Search over everything that has a name: operations, tensors, modules, files, decisions. "/" comes here from anywhere.

const { freshId, h, replace } = module_dom;
const { memoryWord } = module_model;
const { go } = module_state;

const MOST = 40;

function searchBox(report) {
  const listId = freshId("found");
  const input = h("input", {
    type: "search", role: "combobox", placeholder: "Find operation, tensor, node …", "aria-label": "find anything by name", "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    on: { input: () => seek(), keydown: (event) => key(event), focus: () => input.value && seek(), blur: () => setTimeout(close, 150) },
  });
  const list = h("div", { class: "search-found", role: "listbox", id: listId, "aria-label": "what was found", hidden: true });
  const box = h("div", { class: "search", role: "search" }, input, h("kbd", { text: "/", "aria-hidden": "true" }), list);
  let found = [];
  let at = 0;

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });

  function seek() {
    const word = input.value.trim().toLowerCase();
    at = 0;
    found = word ? matches(report, word) : [];
    list.hidden = !word;
    input.setAttribute("aria-expanded", String(Boolean(word)));
    draw();
  }

  function draw() {
    replace(list, found.length ? found.map((item, place) => h("div", {
      class: "search-item", role: "option", id: `${listId}-${place}`, "aria-selected": String(place === at),
      on: { mousedown: (event) => { event.preventDefault(); choose(item); } },
    }, h("span", { class: "search-kind", text: item.kind }), h("span", { class: "search-name", text: item.name }), h("span", { class: "search-more", text: item.more }))) : h("p", { class: "search-none", text: "Nothing has this in its name." }));
    if (found.length) input.setAttribute("aria-activedescendant", `${listId}-${at}`);
    else input.removeAttribute("aria-activedescendant");
    list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }

  function key(event) {
    if (event.key === "Escape") {
      close();
      input.blur();
    } else if (event.key === "Enter" && found.length) choose(found[at]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = Math.max(0, Math.min(found.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)));
      draw();
    }
  }

  function choose(item) {
    close();
    go({ text: null, line: null, finding: null, decision: null, ...item.where });
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  }

  return box;
}

function matches(report, word) {
  const found = [];
  const add = (name, item) => {
    if (found.length < 4 * MOST && name.toLowerCase().includes(word)) found.push({ ...item, name, rank: name.toLowerCase() === word ? 0 : name.toLowerCase().startsWith(word) ? 1 : 2 });
  };
  for (const op of report.ops) add(`${op.op} → ${op.name}`, { kind: `op ${op.id}`, more: op.file, where: { op: op.id, tensor: null } });
  for (const op of report.ops) if (op.file?.toLowerCase().includes(word)) add(op.file, { kind: `op ${op.id}`, more: op.op, where: { op: op.id, tensor: null } });
  for (const tensor of report.tensors) add(tensor.name, { kind: tensor.role, more: memoryWord(tensor.memory), where: { tensor: tensor.id, op: null } });
  report.modules.forEach((path, id) => {
    const first = report.ops.find((op) => op.module === id);
    if (first) add(path, { kind: "module", more: `from op ${first.id}`, where: { view: "graph", by: "module", op: first.id, tensor: null } });
  });
  for (const item of report.decisions) add(item.subject, { kind: item.kind, more: item.reason, where: { view: "why", kind: null, decision: item.id, tensor: item.tensor ?? null, op: item.tensor === undefined ? item.ops[0] ?? null : null } });
  return found.sort((one, other) => one.rank - other.rank).slice(0, MOST);
}
return { searchBox };
})();

// stage.js
const module_stage = (() => {
// A drawing of many things: a canvas that pans and zooms, and that pointer, keyboard and screen reader all walk.
//
// The drawing is given as `things`: rectangles in its own coordinates, each with what to say of it. What draws them is the
// chart's; where they are, which is meant and what is said of it is done here, the same for every chart.

const { announcer, h } = module_dom;
const { hideTooltip, showTooltip } = module_tooltip;

const MOST_ZOOM = 400;

class Stage {
  // `draw(context, stage)`; `things`: [{x, y, w, h, ...}], last one on top; `describe(thing)` -> {title, lines};
  // `activate(thing)`; `zoom`: "xy", "x" or ""; `margin`: pixels around that do not move {left, top, right, bottom}.
  constructor({ label, height, draw, describe, activate, zoom = "xy", margin = {}, find = null, minimum = 6, background = null }) {
    Object.assign(this, { paint: draw, describe, activate, zoom, find, minimum, background });
    this.margin = { left: 0, top: 0, right: 0, bottom: 0, ...margin };
    this.things = [];
    this.content = { width: 1, height: 1 };
    this.view = { x: 0, y: 0, kx: 1, ky: 1 };
    this.focus = null;
    this.hover = null;
    this.canvas = h("canvas", { class: "stage-canvas", "aria-hidden": "true" });
    this.said = announcer();
    this.surface = h("div", {
      class: "stage-surface", tabindex: "0", role: "application", "aria-roledescription": "chart",
      "aria-label": `${label}. Arrow keys walk, Enter selects${zoom ? ", plus and minus zoom, 0 shows all" : ""}.`,
    }, this.canvas);
    if (height) this.surface.style.height = `${height}px`;
    this.bar = zoom ? this.buttons() : null;
    this.element = h("div", { class: "stage" }, this.surface, this.bar, this.said);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.surface);
    window.addEventListener("spyrec-redraw", () => this.draw());
  }

  setThings(things, content) {
    this.things = things;
    this.content = content;
    this.focus = null;
    this.hover = null;
    this.fit();
  }

  buttons() {
    const button = (text, title, act) => h("button", { type: "button", class: "icon-button", "aria-label": title, data: { tip: title }, text, on: { click: act } });
    return h("div", { class: "stage-buttons" },
      button("+", "zoom in", () => this.zoomBy(1.5)), button("−", "zoom out", () => this.zoomBy(1 / 1.5)), button("fit", "show all", () => this.fit()));
  }

  resize() {
    const box = this.surface.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const scale = window.devicePixelRatio || 1;
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.canvas.style.width = `${box.width}px`;
    this.canvas.style.height = `${box.height}px`;
    if (this.isFit !== false) this.fit();
    else this.draw();
  }

  fit() {
    if (!this.width) return;
    const { left, top, right, bottom } = this.margin;
    const kx = (this.width - left - right) / this.content.width;
    const ky = (this.height - top - bottom) / this.content.height;
    if (this.zoom === "xy") {
      const scale = Math.min(kx, ky, 1.25);
      this.view = { kx: scale, ky: scale, x: 0, y: 0 };
      this.view.x = -((this.width - left - right) / scale - this.content.width) / 2;
      this.view.y = -Math.max(0, ((this.height - top - bottom) / scale - this.content.height) / 2);
    } else this.view = { x: 0, y: 0, kx, ky };
    this.least = this.view.kx;
    this.isFit = true;
    this.draw();
  }

  sx(x) {
    return this.margin.left + (x - this.view.x) * this.view.kx;
  }

  sy(y) {
    return this.margin.top + (y - this.view.y) * this.view.ky;
  }

  wx(screen) {
    return (screen - this.margin.left) / this.view.kx + this.view.x;
  }

  wy(screen) {
    return (screen - this.margin.top) / this.view.ky + this.view.y;
  }

  isSeen(thing) {
    return this.sx(thing.x + thing.w) >= this.margin.left && this.sx(thing.x) <= this.width - this.margin.right &&
      this.sy(thing.y + thing.h) >= this.margin.top && this.sy(thing.y) <= this.height - this.margin.bottom;
  }

  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const [atX, atY] = [this.wx(x), this.wy(y)];
    const scale = Math.max(this.least * 0.5, Math.min(this.least * MOST_ZOOM, this.view.kx * factor));
    const real = scale / this.view.kx;
    this.view.kx = scale;
    if (this.zoom === "xy") this.view.ky *= real;
    this.view.x = atX - (x - this.margin.left) / this.view.kx;
    if (this.zoom === "xy") this.view.y = atY - (y - this.margin.top) / this.view.ky;
    this.isFit = false;
    this.clamp();
    this.draw();
  }

  clamp() {
    if (this.zoom !== "x") return;
    const seen = (this.width - this.margin.left - this.margin.right) / this.view.kx;
    if (seen >= this.content.width) Object.assign(this.view, { x: 0, kx: this.least });
    else this.view.x = Math.max(0, Math.min(this.content.width - seen, this.view.x));
  }

  // Moves so that a thing is in sight, and no more than that.
  reveal(thing, scale = null) {
    if (!this.width || !this.zoom) return;
    if (scale && this.view.kx < scale) {
      this.view.kx = scale;
      if (this.zoom === "xy") this.view.ky = scale;
      this.isFit = false;
    } else if (this.isSeen(thing) && this.sx(thing.x) >= this.margin.left && this.sy(thing.y) >= this.margin.top) return;
    this.isFit = false;
    this.view.x = thing.x + thing.w / 2 - (this.width - this.margin.left - this.margin.right) / this.view.kx / 2;
    if (this.zoom === "xy") this.view.y = thing.y + thing.h / 2 - (this.height - this.margin.top - this.margin.bottom) / this.view.ky / 2;
    this.clamp();
    this.draw();
  }

  thingAt(x, y) {
    if (x < this.margin.left || x > this.width - this.margin.right || y < this.margin.top || y > this.height - this.margin.bottom) {
      if (!this.find) return null;
    }
    if (this.find) return this.find(this.wx(x), this.wy(y), x, y);
    for (let place = this.things.length - 1; place >= 0; place -= 1) {
      const thing = this.things[place];
      const spareX = Math.max(0, (this.minimum - thing.w * this.view.kx) / 2);
      const spareY = Math.max(0, (this.minimum - thing.h * this.view.ky) / 2);
      if (x >= this.sx(thing.x) - spareX && x <= this.sx(thing.x + thing.w) + spareX && y >= this.sy(thing.y) - spareY && y <= this.sy(thing.y + thing.h) + spareY) return thing;
    }
    return null;
  }

  listen() {
    let drag = null;
    const at = (event) => {
      const box = this.surface.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.surface.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (drag) {
        if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
        if (drag.moved && this.zoom) {
          this.view.x = drag.view.x - (x - drag.x) / this.view.kx;
          if (this.zoom === "xy") this.view.y = drag.view.y - (y - drag.y) / this.view.ky;
          this.isFit = false;
          this.clamp();
          this.draw();
        }
        return;
      }
      const thing = this.thingAt(x, y);
      if (thing !== this.hover) {
        this.hover = thing;
        this.surface.style.cursor = thing ? "pointer" : "";
        this.draw();
      }
      if (thing) showTooltip(this.describe(thing), event.clientX, event.clientY, this.surface);
      else hideTooltip();
    });
    this.surface.addEventListener("pointerleave", () => {
      this.hover = null;
      hideTooltip();
      this.draw();
    });
    this.surface.addEventListener("pointerdown", (event) => {
      const [x, y] = at(event);
      drag = { x, y, view: { ...this.view }, moved: false };
      this.surface.setPointerCapture(event.pointerId);
    });
    this.surface.addEventListener("pointerup", (event) => {
      const [x, y] = at(event);
      const wasClick = drag && !drag.moved;
      drag = null;
      const thing = wasClick ? this.thingAt(x, y) : null;
      if (thing) {
        this.focus = thing;
        this.activate(thing);
        this.draw();
      }
    });
    this.surface.addEventListener("pointercancel", () => { drag = null; });
    this.surface.addEventListener("wheel", (event) => {
      if (!this.zoom || !(event.ctrlKey || event.metaKey || this.surface === document.activeElement)) return;
      event.preventDefault();
      const [x, y] = at(event);
      this.zoomBy(Math.exp(-event.deltaY / 400), x, y);
    }, { passive: false });
    this.surface.addEventListener("keydown", (event) => this.key(event));
    this.surface.addEventListener("focus", () => this.draw());
    this.surface.addEventListener("blur", () => {
      hideTooltip();
      this.draw();
    });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (direction) this.setFocus(this.focus ? this.next(direction) : this.things[0]);
    else if (event.key === "Home") this.setFocus(this.things[0]);
    else if (event.key === "End") this.setFocus(this.things[this.things.length - 1]);
    else if ((event.key === "Enter" || event.key === " ") && this.focus) this.activate(this.focus);
    else if (event.key === "+" || event.key === "=") this.zoom && this.zoomBy(1.5);
    else if (event.key === "-") this.zoom && this.zoomBy(1 / 1.5);
    else if (event.key === "0") this.zoom && this.fit();
    else return;
    event.preventDefault();
  }

  // The nearest thing in a direction; what lies straight ahead counts as nearer.
  next([dx, dy]) {
    const middle = (thing) => [thing.x + thing.w / 2, thing.y + thing.h / 2];
    const [x, y] = middle(this.focus);
    let best = this.focus;
    let least = Infinity;
    for (const thing of this.things) {
      if (thing === this.focus) continue;
      const [otherX, otherY] = middle(thing);
      const along = ((otherX - x) * dx) * this.view.kx + ((otherY - y) * dy) * this.view.ky;
      const aside = Math.abs((otherX - x) * dy) * this.view.kx + Math.abs((otherY - y) * dx) * this.view.ky;
      if (along <= 1e-9) continue;
      const distance = along + 3 * aside;
      if (distance < least) [best, least] = [thing, distance];
    }
    return best;
  }

  setFocus(thing) {
    if (!thing) return;
    this.focus = thing;
    this.reveal(thing);
    this.draw();
    const content = this.describe(thing);
    this.said.textContent = [content.title, ...content.lines.map((line) => (Array.isArray(line) ? line.join(" ") : line))].join("; ");
    const box = this.surface.getBoundingClientRect();
    const x = Math.max(0, Math.min(this.width, this.sx(thing.x + thing.w / 2)));
    const y = Math.max(0, Math.min(this.height, this.sy(thing.y + thing.h)));
    showTooltip(content, box.left + x, box.top + y, this.surface);
  }

  draw() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      if (!this.surface.isConnected) return;
      const context = this.canvas.getContext("2d");
      const scale = window.devicePixelRatio || 1;
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, this.width, this.height);
      context.textBaseline = "middle";
      this.paint(context, this, themeColours());
      const isFocused = document.activeElement === this.surface && this.focus;
      if (isFocused) this.outline(context, this.focus, themeColours().focus);
    });
  }

  outline(context, thing, colour) {
    context.lineWidth = 3;
    context.strokeStyle = colour;
    context.strokeRect(this.sx(thing.x) - 2, this.sy(thing.y) - 2, thing.w * this.view.kx + 4, thing.h * this.view.ky + 4);
  }

  clip(context) {
    context.save();
    context.beginPath();
    context.rect(this.margin.left, this.margin.top, this.width - this.margin.left - this.margin.right, this.height - this.margin.top - this.margin.bottom);
    context.clip();
  }
}

let colours = null;

// The theme's colours, as the style sheet has them.
function themeColours() {
  if (colours) return colours;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = Object.fromEntries(["ink", "ink-soft", "ink-faint", "line", "line-strong", "surface", "surface-2", "page", "accent", "focus", "bad", "good"]
    .map((name) => [name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase()), read(name)]));
  colours.font = style.getPropertyValue("--font").trim();
  colours.mono = style.getPropertyValue("--mono").trim();
  return colours;
}

function forgetColours() {
  colours = null;
}

function font(pixels, weight = 400) {
  return `${weight} ${pixels}px ${themeColours().font}`;
}

function mono(pixels) {
  return `${pixels}px ${themeColours().mono}`;
}

// Text that fits into a width, cut with an ellipsis.
function cut(context, text, width) {
  if (width <= 0) return "";
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}

// Places for an axis of bytes: multiples of a power of two.
function byteTicks(high, most) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, high / Math.max(1, most))));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, place) => place * step);
}

// Round places for an axis: at most `most` of them between two values.
function ticks(low, high, most) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const places = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) places.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return places;
}
return { Stage, themeColours, forgetColours, font, mono, cut, byteTicks, ticks };
})();

// table.js
const module_table = (() => {
// A table of any length: a head that sorts, rows that are drawn when they are seen.

const { h, replace } = module_dom;
const { VirtualList } = module_virtual;

const ROW = 28;

// `columns`: [{key, title, width, value(row), text(row), numeric?, bar?(row) -> share, colour?(row), tip?}].
class Table {
  constructor({ label, columns, rows, activate, sort = null, chosen = () => false }) {
    Object.assign(this, { columns, all: rows, activate, chosen });
    this.order = sort;
    this.shown = rows;
    this.heads = columns.map((column, place) =>
      h("div", { role: "columnheader", class: column.numeric ? "cell numeric" : "cell", "aria-sort": "none" },
        h("button", { type: "button", class: "sort", data: column.tip ? { tip: column.tip } : {}, on: { click: () => this.sortBy(place) } },
          h("span", { text: column.title }), h("span", { class: "sort-mark", "aria-hidden": "true" }))));
    this.head = h("div", { class: "table-head", role: "row", "aria-rowindex": "1" }, this.heads);
    this.list = new VirtualList({
      label, rowHeight: ROW, count: rows.length, role: "rowgroup", rowRole: "row", className: "table-body",
      render: (element, index) => this.row(element, this.shown[index]),
      activate: (index) => this.activate(this.shown[index]),
    });
    this.element = h("div", { class: "table", role: "grid", "aria-label": label, "aria-rowcount": rows.length + 1 }, this.head, this.list.element);
    const template = columns.map((column) => column.width ?? "minmax(6rem, 1fr)").join(" ");
    this.element.style.setProperty("--columns", template);
    this.settle();
  }

  setRows(rows) {
    this.all = rows;
    this.element.setAttribute("aria-rowcount", String(rows.length + 1));
    this.settle();
  }

  sortBy(place) {
    const key = this.columns[place].key;
    const down = this.order?.key === key ? !this.order.down : Boolean(this.columns[place].numeric);
    this.order = { key, down };
    this.settle();
  }

  settle() {
    const column = this.order && this.columns.find((item) => item.key === this.order.key);
    this.shown = column ? [...this.all].sort((one, other) => compare(column.value(one), column.value(other), this.order.down)) : this.all;
    this.columns.forEach((item, place) => {
      const isOrder = column === item;
      this.heads[place].setAttribute("aria-sort", isOrder ? (this.order.down ? "descending" : "ascending") : "none");
      this.heads[place].querySelector(".sort-mark").textContent = isOrder ? (this.order.down ? "▼" : "▲") : "";
    });
    this.list.resize(this.shown.length);
  }

  refresh() {
    this.list.redraw();
  }

  reveal(test) {
    const at = this.shown.findIndex(test);
    if (at >= 0) this.list.setActive(at);
  }

  row(element, row) {
    element.classList.toggle("is-chosen", this.chosen(row));
    if (this.chosen(row)) element.setAttribute("aria-selected", "true");
    replace(element, this.columns.map((column) => {
      const text = column.text ? column.text(row) : String(column.value(row) ?? "–");
      const cell = h("div", { role: "gridcell", class: column.numeric ? "cell numeric" : "cell", title: text.length > 24 ? text : null });
      if (column.bar) {
        const bar = h("span", { class: "cell-bar", "aria-hidden": "true" });
        bar.style.width = `${Math.round(100 * Math.max(0, Math.min(1, column.bar(row) || 0)))}%`;
        cell.append(bar);
      }
      if (column.colour) {
        const dot = h("span", { class: "dot", "aria-hidden": "true" });
        dot.style.backgroundColor = column.colour(row);
        cell.append(dot);
      }
      cell.append(h("span", { class: "cell-text", text }));
      return cell;
    }));
  }
}

function compare(one, other, down) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  const order = typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
  return down ? -order : order;
}
return { Table };
})();

// inspector.js
const module_inspector = (() => {
// What is known of the operation or tensor that is chosen, and where else it can be seen.

const { definition, h, replace } = module_dom;
const { address, bytes, count, digits, exactBytes, flops, micros, microsWithin, percent, ratio, shape } = module_format;
const { coreText, errorOf, findOp, findTensor, memoryWord } = module_model;
const { button, opLink, pill, tensorLink } = module_parts;
const { go, state } = module_state;

const MOST = 12;

class Inspector {
  constructor(report) {
    this.report = report;
    this.element = h("aside", { class: "inspector", "aria-label": "what is chosen", hidden: true, tabindex: "-1" });
  }

  show() {
    const [op, tensor] = [findOp(this.report, state().op), findTensor(this.report, state().tensor)];
    const isChosen = op !== null || tensor !== null;
    this.element.hidden = !isChosen;
    if (!isChosen) return isChosen;
    replace(this.element, tensor !== null ? this.tensor(this.report.tensors[tensor]) : this.op(this.report.ops[op]));
    this.element.scrollTop = 0;
    return isChosen;
  }

  head(kind, title) {
    const close = h("button", { type: "button", class: "icon-button", "aria-label": "close", data: { tip: "close" }, text: "×", on: { click: () => go({ op: null, tensor: null }) } });
    const link = h("button", {
      type: "button", class: "icon-button", "aria-label": "copy a link to this", data: { tip: "copy a link to this" }, text: "link",
      on: { click: () => navigator.clipboard?.writeText(location.href).then(() => { link.textContent = "copied"; }, () => {}) },
    });
    return h("div", { class: "inspector-head" }, h("div", {}, h("p", { class: "inspector-kind", text: kind }), h("h2", { class: "inspector-title", text: title })), link, close);
  }

  section(title, ...content) {
    return h("section", {}, h("h3", { text: title }), content);
  }

  list(title, items, make) {
    if (!items.length) return null;
    return this.section(title, h("ul", { class: "link-list" }, items.slice(0, MOST).map((item) => h("li", {}, make(item))),
      items.length > MOST ? h("li", { class: "faint", text: `and ${count(items.length - MOST)} more` }) : null));
  }

  reasons(ids) {
    if (!ids.length) return null;
    const shown = [...ids].sort((one, other) => Math.abs(this.report.decisions[other].saved_bytes) - Math.abs(this.report.decisions[one].saved_bytes)).slice(0, 6);
    return this.section("why", shown.map((id) => reason(this.report.decisions[id])));
  }

  op(op) {
    const { report } = this;
    const error = errorOf(report, op.id);
    const findings = (report.run?.findings ?? []).filter((finding) => finding.op === op.id);
    const readers = report.ops.filter((other) => other.inputs.some((operand) => operand.from === op.id));
    const jump = h("div", { class: "jump" },
      ...[["provenance", "Provenance"], ["graph", "Graph"], ["memory", "Memory", "lx"], ["time", "Time", "timeline"]]
        .filter(([view]) => view !== state().view)
        .map(([view, text, tab]) => button(text, () => go({ view, tab: tab ?? null, line: null, text: null }))));
    return [
      this.head(`operation ${op.id} of ${report.ops.length}`, `${op.op} → ${op.name}`),
      jump,
      h("div", { class: "inspector-body" },
        findings.length || (error !== null && error > 1)
          ? this.section("found wrong", error !== null && error > 1 ? pill(`error ${ratio(error)} its bound`, "is-bad") : null,
            findings.slice(0, 4).map((finding) => h("div", { class: "reason is-bad" }, h("span", { class: "reason-head", text: finding.sanitizer }), h("span", { text: finding.message }))))
          : null,
        this.section("figures", definition([
          ["time", op.us ? microsWithin(op.us, op.uncertainty) : null],
          ["starts at", report.time.schedule.length ? micros(op.start_us) : null],
          ["limited by", op.limit],
          ["executions", count(op.executions)],
          ["read", exactBytes(op.read)],
          ["written", exactBytes(op.written)],
          ["lower bound", `${bytes(op.bound)}${op.bound ? ` (moves ${ratio(op.moved / op.bound)})` : ""}`],
          ["ring", op.ring ? exactBytes(op.ring) : null],
          ["arithmetic", flops(op.flops)],
          ["intensity", op.flops_per_byte !== undefined ? `${digits(op.flops_per_byte)} flop/B, ridge ${digits(op.ridge ?? 0)}` : "no device memory"],
          ["of its peak", op.utilisation !== undefined ? `${percent(op.utilisation)} of ${String(op.unit ?? "").toUpperCase()}` : null],
          ["error / bound", error !== null ? ratio(error) : null],
        ])),
        this.section("where", definition([
          ["cores", `${coreText(op.cores)} (${op.coreCount})`],
          ["division", op.dims.map((dim) => `${dim.name} ${dim.extent} = ${dim.parts} × ${dim.core}`).join(", ")],
          ["loops", op.loops.map((loop) => `${report.loops[loop].name} × ${report.loops[loop].count}`).join(", ")],
          ["program", report.programs.length > 1 ? `${op.program} (${report.programs[op.program]?.directory})` : null],
          ["file", op.file],
          ["node", op.node],
          ["module", op.module !== undefined ? report.modules[op.module] : null],
          ["source", op.source],
          ["model's op", op.origin],
        ])),
        this.list("reads", op.inputs, (operand) => [tensorLink(report, operand.tensor), h("span", { class: "more", text: `${operand.memory}, ${bytes(operand.core_bytes ?? 0)}/core` })]),
        this.list("writes", op.outputs, (operand) => [tensorLink(report, operand.tensor), h("span", { class: "more", text: `${operand.memory}, ${bytes(operand.core_bytes ?? 0)}/core` })]),
        this.list("read by", readers, (other) => opLink(report, other.id)),
        this.reasons(op.decisions)),
    ];
  }

  tensor(tensor) {
    const { report } = this;
    const inLx = report.memory.lx.flatMap((map) => map.regions.filter((region) => region.tensor === tensor.id));
    const own = tensor.decisions;
    const decided = own.length ? own : report.decisions.filter((item) => item.tensor === tensor.id).map((item) => item.id);
    const jump = h("div", { class: "jump" },
      tensor.layout ? button("Sticks", () => go({ view: "memory", tab: "sticks" })) : null,
      inLx.length ? button("Scratchpads", () => go({ view: "memory", tab: "lx" })) : null,
      tensor.address !== undefined || tensor.memory === "pool" ? button("Device memory", () => go({ view: "memory", tab: "device" })) : null,
      decided.length ? button("Why", () => go({ view: "why" })) : null);
    return [
      this.head(`${tensor.role} tensor`, tensor.name),
      jump,
      h("div", { class: "inspector-body" },
        this.section("figures", definition([
          ["lies in", memoryWord(tensor.memory)],
          ["shape", `${shape(tensor.shape)} ${tensor.dtype ?? ""}`],
          ["size", exactBytes(tensor.size)],
          ["read", exactBytes(tensor.read)],
          ["written", exactBytes(tensor.written)],
          ["address", tensor.address !== undefined ? `${address(tensor.address)} (segment ${tensor.segment ?? 0})` : null],
          ["device size", tensor.layout ? `[${tensor.layout.device_size.join(", ")}]` : null],
          ["stride map", tensor.layout?.stride_map ? `[${tensor.layout.stride_map.join(", ")}]` : null],
          ["format", tensor.layout?.format],
        ])),
        decided.length ? this.reasons(decided) : this.whereNot(tensor, inLx),
        inLx.length ? this.section("in the scratchpads", inLx.slice(0, 4).map((region) => definition([
          ["bytes", `[${count(region.first)}, ${count(region.past)}) of each core`],
          ["from, to", `operation ${region.begin} to ${region.end}`],
          ["in memory", `${bytes(region.memory_bytes ?? 0)} more would move`],
        ]))) : null,
        this.list("written by", tensor.writers, (id) => opLink(report, id)),
        this.list("read by", tensor.readers, (id) => opLink(report, id))),
    ];
  }

  whereNot(tensor, inLx) {
    if (inLx.length || tensor.memory === "lx") return null;
    const words = tensor.role === "intermediate"
      ? "The plan notes no decision about it: the planner never had it as a candidate for the scratchpads."
      : `It is ${tensor.role === "output" ? "an" : "a"} ${tensor.role} of the model: it begins or ends in device memory, whatever lies in the scratchpads meanwhile.`;
    return this.section("why", h("p", { class: "soft", text: words }));
  }
}

function reason(decision, isWhole = false) {
  const saved = [decision.saved_bytes ? `${bytes(decision.saved_bytes)}` : null, decision.saved_us ? micros(decision.saved_us) : null].filter(Boolean).join(", ");
  return h("div", { class: decision.kind === "spilled" ? "reason is-bad" : "reason" },
    h("span", { class: "reason-head", text: `${decision.kind}: ${decision.subject}` }),
    h("span", { text: decision.reason }),
    decision.alternative ? h("span", { class: "faint", text: `instead of ${decision.alternative}${saved ? `, which costs ${saved} more` : ""}` })
      : saved ? h("span", { class: "faint", text: `saves ${saved}` }) : null,
    isWhole && decision.considered.length ? considered(decision) : null);
}

// The ways that the planner weighed; what has no figure is not possible.
function considered(decision) {
  const has = (key) => decision.considered.some((item) => item[key] !== undefined);
  const columns = [
    ["programs", has("programs"), (item) => item.programs],
    ["time", has("us"), (item) => (item.us === undefined ? "–" : micros(item.us))],
    ["bytes", has("bytes"), (item) => (item.bytes === undefined ? "–" : bytes(item.bytes))],
  ].filter(([, isThere]) => isThere);
  return h("table", { class: "considered" },
    h("caption", { text: `what was weighed: ${decision.measure}` }),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "way" }), columns.map(([title]) => h("th", { scope: "col", class: "is-number", text: title })))),
    h("tbody", {}, decision.considered.map((item) => h("tr", { class: item.chosen ? "is-chosen" : "" },
      h("th", { scope: "row", text: item.chosen ? `${item.text} (chosen)` : item.text }),
      columns.map(([, , text]) => h("td", { class: "is-number", text: String(text(item)) }))))));
}
return { Inspector, reason };
})();

// sticks.js
const module_sticks = (() => {
// What a stick holds: host index and device address of every element, both ways.

const { empty, h, replace } = module_dom;
const { address, bytes, count, plural, shape } = module_format;
const { Layout } = module_layouts;
const { findTensor } = module_model;
const { card, field, select } = module_parts;
const { go, state } = module_state;

class Sticks {
  constructor(report) {
    this.report = report;
    this.all = report.tensors.filter((tensor) => tensor.layout);
    if (!this.all.length) {
      this.elements = [empty("No layouts are known", "A record alone, or a foreign bundle without an argument table, does not say how tensors lie.", "spyrec report BUNDLE --args ARGS.json -o report.html")];
      this.update = () => {};
      return;
    }
    this.body = h("div", { class: "stack" });
    this.elements = [this.body];
  }

  update() {
    const wanted = findTensor(this.report, state().tensor);
    const tensor = this.all.find((item) => item.id === wanted) ?? this.tensor ?? this.all[0];
    if (tensor === this.tensor) return;
    this.tensor = tensor;
    this.layout = new Layout(tensor);
    this.coordinate = this.layout.sizes.map(() => 0);
    this.build();
  }

  build() {
    const { tensor, layout } = this;
    const choose = select(this.all.map((item) => [String(item.id), item.name]), tensor.id, (id) => go({ tensor: id, op: null }));
    this.indexInputs = tensor.shape.map((extent, dim) => this.input(`index of dim ${dim}`, extent, () => this.fromIndex()));
    this.deviceInputs = layout.sizes.map((extent, dim) => this.input(`device coordinate ${dim}`, extent, () => this.fromDevice()));
    this.addressInput = this.input("byte from the tensor's start", layout.nbytes, () => this.fromAddress());
    this.addressInput.classList.add("is-wide");
    this.said = h("p", { class: "reason", role: "status" });
    this.grid = h("div", { class: "stick-grid", role: "group", "aria-label": "elements of the stick" });
    this.gridTitle = h("p", { class: "faint" });
    const row = (label, inputs) => h("div", { class: "row" }, h("span", { class: "row-label", text: label }), inputs);
    const facts = `${shape(tensor.shape)} ${tensor.dtype ?? ""} on the host; [${layout.sizes.join(", ")}] ${tensor.layout.format ?? ""} on the device, stride map [${layout.strides.join(", ")}]`;
    replace(this.body,
      h("section", { class: "card", "aria-label": "one element" }, h("div", { class: "card-head" }, field("tensor", choose), h("p", { text: facts })),
        h("div", { class: "card-body stack" }, row("host index", this.indexInputs.length ? this.indexInputs : h("span", { class: "soft", text: "a scalar" })), row("device coordinate", this.deviceInputs), row("address", this.addressInput), this.said)),
      card("The stick that it lies in", `128 bytes, ${plural(layout.sizes.at(-1), "element")} of ${layout.word} B; hatched is padding`, h("div", { class: "card-body stack" }, this.gridTitle, this.grid)));
    this.settle();
  }

  input(label, extent, changed) {
    return h("input", { type: "number", class: "index-input", min: 0, max: extent - 1, step: 1, "aria-label": label, on: { change: changed } });
  }

  read(inputs, extents) {
    return inputs.map((input, dim) => Math.max(0, Math.min(extents[dim] - 1, Math.floor(Number(input.value)) || 0)));
  }

  fromIndex() {
    const found = this.layout.coordinate(this.read(this.indexInputs, this.tensor.shape));
    if (found) this.coordinate = found;
    this.settle(found ? null : "The layout gives no single place for this index.");
  }

  fromDevice() {
    this.coordinate = this.read(this.deviceInputs, this.layout.sizes);
    this.settle();
  }

  fromAddress() {
    this.coordinate = this.layout.at(this.read([this.addressInput], [this.layout.nbytes])[0]);
    this.settle();
  }

  settle(problem = null) {
    const { layout, tensor, coordinate } = this;
    const index = layout.index(coordinate);
    const offset = layout.address(coordinate);
    this.deviceInputs.forEach((input, dim) => { input.value = String(coordinate[dim]); });
    if (!problem && index) this.indexInputs.forEach((input, dim) => { input.value = String(index[dim]); });
    this.addressInput.value = String(offset);
    const whole = tensor.address !== undefined ? `${address(tensor.address + offset)} in device memory` : "its address comes with the launch";
    this.said.textContent = problem ?? `${index ? `${tensor.name}[${index.join(", ")}]` : "Padding: no host element"} lies at device coordinate (${coordinate.join(", ")}), byte ${count(offset)} of ${count(layout.nbytes)} (${bytes(layout.nbytes)}), stick ${count(Math.floor(offset / 128))}; ${whole}.`;
    this.drawStick();
  }

  drawStick() {
    const { layout, coordinate } = this;
    const outer = coordinate.slice(0, -1);
    this.gridTitle.textContent = `stick ${count(Math.floor(layout.address([...outer, 0]) / 128))} of ${count(layout.nbytes / 128)}, at device coordinate (${[...outer, "·"].join(", ")})`;
    replace(this.grid, Array.from({ length: layout.sizes.at(-1) }, (_, lane) => {
      const at = [...outer, lane];
      const index = layout.index(at);
      const isChosen = lane === coordinate.at(-1);
      return h("button", {
        type: "button", class: `stick-cell${index ? "" : " is-pad"}`, "aria-pressed": String(isChosen), tabindex: isChosen ? 0 : -1,
        "aria-label": index ? `host index ${index.join(", ")}, byte ${layout.address(at)}` : `padding, byte ${layout.address(at)}`,
        data: { tip: index ? `host (${index.join(", ")}) · byte ${count(layout.address(at))}` : `padding · byte ${count(layout.address(at))}`, lane },
        text: index ? index.join(",") : "·",
        on: { click: () => this.pick(lane), keydown: (event) => this.key(event, lane) },
      });
    }));
  }

  pick(lane) {
    this.coordinate = [...this.coordinate.slice(0, -1), lane];
    this.settle();
    this.grid.querySelector('[aria-pressed="true"]').focus();
  }

  key(event, lane) {
    const to = { ArrowRight: lane + 1, ArrowLeft: lane - 1, ArrowDown: lane + 16, ArrowUp: lane - 16 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to >= 0 && to < this.layout.sizes.at(-1)) this.pick(to);
  }
}
return { Sticks };
})();

// view_provenance.js
const module_view_provenance = (() => {
// Three panes: what the user wrote, what the compiler made of it, what came out. A line shows its relatives in all of them.

const { empty, h, replace } = module_dom;
const { count, plural } = module_format;
const { findOp } = module_model;
const { opLink } = module_parts;
const { go, state } = module_state;
const { tabs } = module_tabs;
const { VirtualList } = module_virtual;

const PANES = [["source", "Source", "what the model says"], ["compiler", "Compiler", "its forms, pass by pass"], ["product", "Product", "what the device gets"]];
const LINE = 20;

function provenance(context) {
  const view = new Provenance(context);
  return view;
}

class Provenance {
  constructor({ report, lineage }) {
    Object.assign(this, { report, lineage });
    this.marks = report.texts.map(() => new Map());
    this.found = new Set();
    this.hits = [];
    this.said = h("p", { class: "view-note", role: "status" });
    this.input = h("input", { type: "search", "aria-label": "find in all panes", placeholder: "find in all panes", on: { input: () => this.seek(), keydown: (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1) } });
    this.hitText = h("span", { class: "faint", role: "status" });
    this.panes = PANES.map(([key, title, note]) => new Pane(this, key, title, note));
    const step = (text, title, by) => h("button", { type: "button", class: "icon-button", "aria-label": title, data: { tip: title }, text, on: { click: () => this.step(by) } });
    this.element = h("div", { class: "view is-full" },
      h("div", { class: "view-head" }, h("label", { class: "field" }, this.input), step("↑", "previous match", -1), step("↓", "next match", 1), this.hitText, h("span", { class: "grow" }), this.said),
      report.texts.length ? h("div", { class: "panes" }, this.panes.map((pane) => pane.element))
        : empty("No text is known of this", "A record alone has no files and no graph: open the bundle for its panes.", "spyrec report BUNDLE --run RUN.json -o report.html"));
  }

  update() {
    const { text, line, op } = state();
    const at = Number(text);
    let starts = [];
    const isLine = text !== undefined && this.report.texts[at] && Number(line) < this.report.texts[at].lines.length;
    if (isLine) starts = [[at, Number(line)]];
    else if (findOp(this.report, op) !== null) starts = this.lineage.linesOfOp(findOp(this.report, op));
    this.marks = this.lineage.relatives(starts);
    for (const pane of this.panes) pane.follow(starts);
    this.tell(starts, isLine);
  }

  tell(starts, isLine) {
    if (!starts.length) {
      replace(this.said, "Select a line: what it comes from and what came of it light up in all panes.");
      return;
    }
    const count_ = (kind) => this.marks.reduce((sum, lines) => sum + [...lines.values()].filter((value) => value === kind).length, 0);
    const [text, line] = starts[0];
    const ops = isLine ? this.lineage.opsAround(text, line) : [];
    replace(this.said, isLine ? `Line ${count(line + 1)} of ${this.report.texts[text].name}: ` : `Operation ${state().op}: `,
      `${plural(count_("ancestor"), "line")} above it, ${plural(count_("descendant"), "line")} below`, ops.length ? `, ${plural(ops.length, "operation")} ` : "",
      ops.slice(0, 3).flatMap((id) => [opLink(this.report, id), " "]), ops.length > 3 ? "…" : "");
  }

  seek() {
    const word = this.input.value.trim().toLowerCase();
    this.hits = [];
    if (word) {
      const matching = new Set(this.report.strings.flatMap((text, id) => (text.toLowerCase().includes(word) ? [id] : [])));
      for (const text of this.report.texts) text.lines.forEach((string, line) => matching.has(string) && this.hits.push([text.id, line]));
    }
    this.found = new Set(this.hits.map(([text, line]) => `${text}:${line}`));
    this.at = -1;
    this.hitText.textContent = word ? plural(this.hits.length, "match", "matches") : "";
    for (const pane of this.panes) pane.redraw();
    if (this.hits.length) this.step(1);
  }

  step(by) {
    if (!this.hits.length) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const [text, line] = this.hits[this.at];
    this.hitText.textContent = `${count(this.at + 1)} of ${count(this.hits.length)}`;
    this.panes.find((pane) => pane.key === this.report.texts[text].pane)?.reveal(text, line);
  }

  choose(text, line) {
    const ops = this.lineage.opsAround(text, line);
    go({ text, line, op: ops.length ? ops[0] : null, tensor: null });
  }
}

class Pane {
  constructor(view, key, title, note) {
    Object.assign(this, { view, key });
    this.texts = view.report.texts.filter((text) => text.pane === key);
    this.shown = this.texts.length ? this.texts[key === "compiler" ? 0 : this.texts.length - 1] : null;
    if (key === "source" && this.texts.length) this.shown = this.texts.find((text) => text.kind === "json") ?? this.texts[0];
    this.note = h("p", { text: note });
    this.list = new VirtualList({
      label: `${title}: lines`, rowHeight: LINE, count: this.shown?.lines.length ?? 0,
      render: (element, line) => this.render(element, line),
      activate: (line) => view.choose(this.shown.id, line),
    });
    const bar = this.texts.length > 1 ? tabs(`${title}: forms`, this.texts.map((text) => ({ key: String(text.id), title: text.name })), (id) => this.show(Number(id)), "pane-tabs") : null;
    this.bar = bar;
    this.element = h("section", { class: "card pane", "aria-label": title, data: { pane: key } },
      h("div", { class: "pane-head" }, h("div", { class: "pane-title" }, h("h2", { text: title }), this.note), bar ? bar.bar : h("p", { class: "faint mono", text: this.shown?.name ?? "" })),
      this.shown ? this.list.element : empty("Nothing here", this.missing(), null));
    if (this.shown) {
      this.widen();
      this.list.element.dataset.text = this.shown.id;
      bar?.select(String(this.shown.id));
    }
  }

  missing() {
    return { source: "The bundle holds no graph and its files no handles.", compiler: "Its graph, compiled again, does not give this bundle, or there is none: the compiler's forms are not known.", product: "There are no files." }[this.key];
  }

  show(id) {
    this.shown = this.view.report.texts[id];
    this.list.element.dataset.text = id;
    this.bar?.select(String(id));
    this.list.active = -1;
    this.list.element.scrollTop = 0;
    this.widen();
    this.list.resize(this.shown.lines.length);
    this.toMarked("center");
  }

  // Rows are as wide as the longest line, so that what is marked stays marked to its end.
  widen() {
    const longest = this.shown.lines.reduce((most, string) => Math.max(most, this.view.report.strings[string].length), 0);
    this.list.space.style.minWidth = `calc(${longest}ch + 80px)`;
  }

  redraw() {
    this.list.redraw();
  }

  reveal(text, line) {
    if (this.shown.id !== text) this.show(text);
    this.list.setActive(line, "center");
    this.list.redraw();
  }

  // Shows a text that has something to do with what is chosen, this one if it has, and the first marked line of it.
  follow(starts) {
    if (!this.shown) return;
    const start = starts.find(([text]) => this.texts.some((item) => item.id === text));
    const marked = (text) => this.view.marks[text.id].size > 0;
    if (start && this.shown.id !== start[0] && (starts.length === 1 || !marked(this.shown))) this.show(start[0]);
    else if (!marked(this.shown) && this.texts.some(marked)) this.show(this.texts.find(marked).id);
    else {
      this.list.redraw();
      this.toMarked("nearest");
    }
    for (const tab of this.bar?.bar.querySelectorAll(".tab") ?? []) {
      const size = this.view.marks[Number(tab.dataset.key)].size;
      tab.classList.toggle("has-marks", size > 0);
    }
  }

  toMarked(how) {
    const lines = [...this.view.marks[this.shown.id].keys()];
    if (!lines.length) return;
    const first = Math.min(...lines);
    const top = this.list.element.scrollTop / LINE;
    const bottom = top + (this.list.element.clientHeight || 400) / LINE - 1;
    if (how === "center" || !lines.some((line) => line >= top && line <= bottom)) this.list.show(first, "center");
  }

  render(element, line) {
    const text = this.shown;
    const mark = this.view.marks[text.id].get(line);
    element.classList.add("line");
    if (mark) element.classList.add(`is-${mark}`);
    if (this.view.found.has(`${text.id}:${line}`)) element.classList.add("is-found");
    if (mark === "self") element.setAttribute("aria-selected", "true");
    const relation = { ancestor: "comes before", descendant: "comes of it", self: "chosen" }[mark];
    element.append(h("span", { class: "line-number", "aria-hidden": "true", text: String(line + 1) }),
      h("span", { class: "line-text", text: this.view.report.strings[text.lines[line]] ?? "" }),
      relation ? h("span", { class: "visually-hidden", text: `, ${relation}` }) : "");
    if (line === text.lines.length - 1 && text.left_out) element.append(h("span", { class: "line-relation", text: `${plural(text.left_out, "more line")} left out` }));
  }
}
return { provenance };
})();

// theme.js
const module_theme = (() => {
// Light or dark: as the system says, until the button says otherwise.

const { h } = module_dom;
const { forgetColours } = module_stage;

const KEY = "spyrec.report.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a file opened where storage is forbidden
  }
}

// Returns the button; `changed` redraws what is on canvases.
function themeButton(changed) {
  const button = h("button", { type: "button", class: "icon-button theme-button", on: { click: () => turn() } });
  let asked = remembered();
  const isDark = () => (asked ? asked === "dark" : system.matches);
  function settle() {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    const title = isDark() ? "show light colours" : "show dark colours";
    button.setAttribute("aria-label", title);
    button.dataset.tip = title;
    button.textContent = isDark() ? "☀" : "☾";
    forgetColours();
    changed();
  }
  function turn() {
    asked = isDark() ? "light" : "dark";
    try {
      localStorage.setItem(KEY, asked);
    } catch {
      // it holds for this visit
    }
    settle();
  }
  system.addEventListener("change", settle);
  settle();
  return button;
}
return { themeButton };
})();

// view_graph.js
const module_view_graph = (() => {
// The operations as a graph: who reads what of whom, coloured by what is asked, in frames of modules, programs and loops.

const { kind, ramp, withAlpha } = module_colours;
const { empty, h, replace } = module_dom;
const { bytes, count, digits, micros, plural, ratio } = module_format;
const { layOut } = module_graph_layout;
const { errorOf, findOp, findTensor } = module_model;
const { legend, rampLegend } = module_parts;
const { cut, font, Stage } = module_stage;
const { go, state } = module_state;
const { choice } = module_tabs;

const MOST_OPEN = 220;
const COLOURS = [["time", "Time"], ["bytes", "Bytes"], ["memory", "LX or memory"], ["error", "Error / bound"]];
const UNKNOWN = "#8a94a3";
const IN_LX = kind(2);
const IN_MEMORY = kind(1);

function graphView(context) {
  return new GraphView(context);
}

class GraphView {
  constructor({ report }) {
    this.report = report;
    this.open = new Set();
    this.by = null;
    this.stage = new Stage({
      label: `graph of ${plural(report.ops.length, "operation")}`, zoom: "xy", minimum: 2,
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => this.activate(thing),
    });
    this.legend = h("div", { class: "row" });
    this.errors = report.ops.map((op) => errorOf(report, op.id));
    this.wrong = new Set((report.run?.findings ?? []).map((finding) => finding.op));
    this.most = { us: Math.max(1e-9, ...report.ops.map((op) => op.us)), moved: Math.max(1, ...report.ops.map((op) => op.moved)) };
    const bys = [["module", "Modules"], ["program", "Programs"], ["none", "None"]].filter(([key]) => key !== "module" || report.modules.length);
    const first = report.modules.length ? "module" : "program";
    this.colours = choice("Colour", COLOURS, (key) => go({ colour: key === "time" ? null : key }));
    this.groups = choice("Frames", bys, (key) => go({ by: key === first ? null : key }));
    this.first = first;
    this.element = h("div", { class: "view is-full" },
      h("div", { class: "view-head" }, this.colours, this.groups, h("span", { class: "grow" }), this.legend),
      report.ops.length ? h("div", { class: "card is-flex grow" }, this.stage.element) : empty("No operations", "The bundle has no operation that could be drawn.", null));
  }

  update() {
    const by = state().by ?? this.first;
    const colour = state().colour ?? "time";
    this.colours.mark(colour);
    this.groups.mark(by);
    this.colour = colour;
    const op = findOp(this.report, state().op);
    if (by !== this.by) {
      this.by = by;
      this.open = new Set();
      this.make();
    }
    if (op !== null && !this.places.nodes.has(op)) {
      for (let group = this.groupOf(op); group !== null; group = this.tree.get(group).parent) this.open.add(group);
      this.make();
    }
    replace(this.legend, this.makeLegend());
    if (op !== null && this.things.has(op)) this.stage.reveal(this.things.get(op));
    this.stage.draw();
  }

  makeLegend() {
    if (this.colour === "memory") return legend([[IN_LX, "result in LX"], [IN_MEMORY, "in device memory"]]);
    if (this.colour === "error") return this.report.run ? [rampLegend("0", "1 × the bound"), legend([["#d55e00", "beyond it"], [UNKNOWN, "not compared"]])] : legend([[UNKNOWN, "no run was recorded: spyrec run BUNDLE --check --record RUN.json"]]);
    return this.colour === "bytes" ? rampLegend("0 B", bytes(this.most.moved)) : rampLegend("0 µs", micros(this.most.us));
  }

  // Frames as a tree: of modules or programs, loops inside of programs.
  frames() {
    const { report } = this;
    this.tree = new Map();
    const add = (id, parent, title, loop = false) => this.tree.has(id) || this.tree.set(id, { id, parent, title, loop });
    if (this.by === "module") {
      report.modules.forEach((path, place) => {
        const parent = path.includes(".") ? report.modules.indexOf(path.slice(0, path.lastIndexOf("."))) : -1;
        add(`m${place}`, parent >= 0 ? `m${parent}` : null, path);
      });
    }
    if (this.by === "program" && report.programs.length > 1) report.programs.forEach((program, place) => add(`p${place}`, null, `program ${place} (${program.directory})`));
    if (this.by !== "module") {
      report.loops.forEach((loop, place) => {
        const outer = loop.parent !== undefined && loop.parent !== null ? `l${loop.parent}` : this.tree.has(`p${loop.program}`) ? `p${loop.program}` : null;
        add(`l${place}`, outer, `loop ${loop.name} × ${count(loop.count)}${loop.dim ? ` over ${loop.dim}` : ""}`, true);
      });
    }
    this.members = new Map([...this.tree.keys()].map((id) => [id, []]));
    for (const op of report.ops) for (let id = this.groupOf(op.id); id !== null; id = this.tree.get(id).parent) this.members.get(id).push(op.id);
    for (const [id, ops] of this.members) if (!ops.length) this.tree.delete(id);
    // a frame around nothing but one frame, or around everything, tells nothing: its content takes its place
    for (const [id, frame] of [...this.tree]) {
      const inner = [...this.tree.values()].filter((other) => other.parent === id);
      const isHollow = !frame.loop && inner.length === 1 && this.members.get(inner[0].id).length === this.members.get(id).length;
      if (isHollow || (!frame.loop && this.members.get(id).length === report.ops.length)) {
        for (const other of inner) other.parent = frame.parent;
        if (inner.length || !this.report.ops.some((op) => this.groupOf(op.id) === id)) this.tree.delete(id);
      }
    }
  }

  groupOf(op) {
    const { report, tree } = this;
    const record = report.ops[op];
    if (this.by === "module") {
      let path = record.module === undefined || record.module === null ? null : report.modules[record.module];
      while (path) {
        const id = `m${report.modules.indexOf(path)}`;
        if (tree.has(id)) return id;
        path = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : null;
      }
      return null;
    }
    if (record.loops.length && tree.has(`l${record.loops.at(-1)}`)) return `l${record.loops.at(-1)}`;
    return tree.has(`p${record.program}`) ? `p${record.program}` : null;
  }

  make() {
    this.frames();
    const { report } = this;
    const isLarge = report.ops.length > MOST_OPEN;
    // the outermost closed frame stands for all that is in it
    const standIn = (op) => {
      let chosen = null;
      if (isLarge) for (let id = this.groupOf(op); id !== null; id = this.tree.get(id).parent) if (!this.open.has(id)) chosen = id;
      return chosen;
    };
    const stands = report.ops.map((op) => standIn(op.id));
    const nodeOf = (op) => stands[op] ?? op;
    const nodes = new Map();
    for (const op of report.ops) {
      const id = nodeOf(op.id);
      if (!nodes.has(id)) nodes.set(id, { id, group: typeof id === "string" ? this.tree.get(id).parent : this.groupOf(op.id) });
    }
    const edges = new Map();
    for (const op of report.ops) {
      for (const operand of op.inputs) {
        if (operand.from === undefined || operand.from === null || operand.from === op.id) continue;
        const [from, to] = [nodeOf(operand.from), nodeOf(op.id)];
        if (from !== to) edges.set(`${from}>${to}`, [from, to, operand.tensor]);
      }
    }
    this.places = layOut([...nodes.values()], [...edges.values()], [...this.tree.values()]);
    this.tensors = new Map([...edges].map(([key, edge]) => [key, edge[2]]));
    this.things = new Map();
    const things = [];
    const frames = [...this.places.groups].map(([id, box]) => ({ ...box, frame: id, isFrame: true })).sort((one, other) => other.w * other.h - one.w * one.h);
    this.frameThings = frames;
    for (const [id, box] of this.places.nodes) {
      const thing = { ...box, id, isGroup: typeof id === "string" };
      this.things.set(id, thing);
      things.push(thing);
    }
    things.sort((one, other) => one.y - other.y || one.x - other.x);
    this.stage.setThings(things, { width: Math.max(1, this.places.width), height: Math.max(1, this.places.height) });
    if (this.places.height > 2400) this.begin(things[0]);
  }

  // A long graph begins at its top, large enough to read.
  begin(first) {
    const start = () => {
      if (!this.stage.width) return requestAnimationFrame(start);
      const scale = Math.min(0.8, Math.max(this.stage.view.kx, (this.stage.width - 40) / this.places.width));
      Object.assign(this.stage.view, { kx: scale, ky: scale, x: this.places.width / 2 - this.stage.width / scale / 2, y: -12 / scale });
      this.stage.isFit = false;
      const op = findOp(this.report, state().op);
      if (op !== null && this.things.has(op)) this.stage.reveal(this.things.get(op));
      else if (first) this.stage.draw();
    };
    requestAnimationFrame(start);
  }

  figure(ids, read) {
    return ids.reduce((sum, id) => sum + read(this.report.ops[id]), 0);
  }

  colourOf(thing) {
    const ids = thing.isGroup ? this.members.get(thing.id) : [thing.id];
    if (this.colour === "bytes") return ramp(Math.max(...ids.map((id) => this.report.ops[id].moved)) / this.most.moved);
    if (this.colour === "memory") return ids.some((id) => this.report.ops[id].outputs.some((operand) => operand.memory !== "lx")) ? IN_MEMORY : IN_LX;
    if (this.colour === "error") {
      const known = ids.map((id) => this.errors[id]).filter((value) => value !== null);
      if (ids.some((id) => this.wrong.has(id))) return "#d55e00";
      return known.length ? (Math.max(...known) > 1 ? "#d55e00" : ramp(Math.max(...known))) : UNKNOWN;
    }
    return ramp(Math.max(...ids.map((id) => this.report.ops[id].us)) / this.most.us);
  }

  describe(thing) {
    if (thing.isGroup) {
      const ids = this.members.get(thing.id);
      return { title: this.tree.get(thing.id).title, lines: [["operations", count(ids.length)], ["time", micros(this.figure(ids, (op) => op.us))], ["moved", bytes(this.figure(ids, (op) => op.moved))], "select to open"] };
    }
    const op = this.report.ops[thing.id];
    const error = this.errors[op.id];
    return {
      title: `${op.id} ${op.op} → ${op.name}`,
      lines: [["time", micros(op.us)], ["moved", bytes(op.moved)], ["lower bound", bytes(op.bound)], ["limited by", op.limit ?? "–"], ["result in", op.outputs.map((operand) => operand.memory).join(", ")],
        ...(error === null ? [] : [["error / bound", ratio(error)]]), ...(op.loops.length ? [["loops", op.loops.map((loop) => `${this.report.loops[loop].name} × ${this.report.loops[loop].count}`).join(", ")]] : [])],
    };
  }

  activate(thing) {
    if (!thing.isGroup) return go({ op: thing.id, tensor: null });
    this.open.add(thing.id);
    const first = this.members.get(thing.id)[0];
    this.make();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const found = this.things.get(first) ?? this.stage.things.find((item) => item.isGroup && this.members.get(item.id).includes(first));
      if (found) {
        this.stage.reveal(found, 0.8);
        this.stage.focus = found;
      }
    }));
    return undefined;
  }

  draw(context, stage, theme) {
    const scale = stage.view.kx;
    const op = findOp(this.report, state().op);
    const tensor = findTensor(this.report, state().tensor);
    for (const frame of this.frameThings) this.drawFrame(context, stage, theme, frame);
    const near = op === null ? null : new Set([op, ...this.report.ops[op].inputs.map((operand) => operand.from)]);
    for (const edge of this.places.edges) this.drawEdge(context, stage, theme, edge, op, tensor);
    for (const thing of stage.things) {
      if (stage.isSeen(thing)) this.drawNode(context, stage, theme, thing, scale, op, near);
    }
  }

  drawFrame(context, stage, theme, frame) {
    if (!stage.isSeen(frame)) return;
    const about = this.tree.get(frame.frame);
    if (!about) return;
    const [x, y, w, h_] = [stage.sx(frame.x), stage.sy(frame.y), frame.w * stage.view.kx, frame.h * stage.view.ky];
    context.fillStyle = about.loop ? withAlpha(kind(4), 0.1) : theme.surface2;
    context.strokeStyle = about.loop ? kind(4) : theme.lineStrong;
    context.globalAlpha = about.loop ? 1 : 0.75;
    context.lineWidth = about.loop ? 1.5 : 1;
    context.setLineDash(about.loop ? [6, 4] : []);
    rounded(context, x, y, w, h_, 8);
    context.fill();
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
    if (w > 60) {
      context.font = font(Math.max(9, Math.min(12, 12 * stage.view.kx + 2)), 600);
      context.textAlign = "left";
      context.fillStyle = theme.inkSoft;
      context.fillText(cut(context, `${about.loop ? "↻ " : ""}${about.title}`, w - 12), x + 7, Math.max(y + 9, stage.margin.top + 10));
    }
  }

  drawEdge(context, stage, theme, edge, op, tensor) {
    const points = edge.points;
    const [top, bottom] = [points[0], points[points.length - 1]];
    if (stage.sy(Math.max(top.y, bottom.y)) < 0 || stage.sy(Math.min(top.y, bottom.y)) > stage.height) return;
    const isNear = op !== null && (edge.from === op || edge.to === op);
    const isTensor = tensor !== null && this.tensors.get(`${edge.from}>${edge.to}`) === tensor;
    context.strokeStyle = isNear || isTensor ? theme.accent : theme.lineStrong;
    context.lineWidth = isNear || isTensor ? 2 : 1;
    context.beginPath();
    context.moveTo(stage.sx(top.x), stage.sy(top.y));
    if (points.length === 2) {
      const middle = (top.y + bottom.y) / 2;
      context.bezierCurveTo(stage.sx(top.x), stage.sy(middle), stage.sx(bottom.x), stage.sy(middle), stage.sx(bottom.x), stage.sy(bottom.y));
    } else {
      for (let place = 1; place < points.length - 1; place += 1) {
        const [here, next] = [points[place], points[place + 1]];
        const end = place === points.length - 2 ? next : { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
        context.quadraticCurveTo(stage.sx(here.x), stage.sy(here.y), stage.sx(end.x), stage.sy(end.y));
      }
    }
    context.stroke();
    if (stage.view.kx > 0.35) arrow(context, stage.sx(bottom.x), stage.sy(bottom.y), context.strokeStyle);
  }

  drawNode(context, stage, theme, thing, scale, op, near) {
    const [x, y, w, h_] = [stage.sx(thing.x), stage.sy(thing.y), thing.w * scale, thing.h * scale];
    const colour = this.colourOf(thing);
    const isChosen = thing.id === op;
    if (h_ < 7) {
      context.fillStyle = isChosen ? theme.focus : colour;
      context.fillRect(x, y, Math.max(2, w), Math.max(2, h_));
      return;
    }
    rounded(context, x, y, w, h_, 6 * Math.min(1, scale));
    context.fillStyle = theme.surface;
    context.fill();
    context.save();
    context.clip();
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(5, 8 * scale), h_);
    context.restore();
    rounded(context, x, y, w, h_, 6 * Math.min(1, scale));
    context.strokeStyle = isChosen ? theme.focus : near?.has(thing.id) ? theme.accent : stage.hover === thing ? theme.ink : theme.lineStrong;
    context.lineWidth = isChosen ? 3 : near?.has(thing.id) ? 2 : 1;
    context.stroke();
    if (h_ < 12) return;
    const left = x + Math.max(5, 8 * scale) + 7 * scale;
    const size = Math.max(8, Math.min(13, 12 * scale));
    const room = w - (left - x) - 6;
    context.textAlign = "left";
    context.fillStyle = theme.ink;
    context.font = font(size, 600);
    const record = this.report.ops[thing.id];
    const title = thing.isGroup ? this.tree.get(thing.id).title : `${record.op}`;
    if (h_ < 22) {
      context.fillText(cut(context, title, room), left, y + h_ / 2);
      return;
    }
    context.font = font(size - 1);
    const figure = thing.isGroup ? "" : this.short(record);
    const taken = figure ? context.measureText(figure).width + 6 : 0;
    const hasFigure = taken < room * 0.45;
    context.font = font(size, 600);
    context.fillText(cut(context, title, room - (hasFigure ? taken : 0)), left, y + h_ * 0.32);
    context.font = font(size - 1);
    context.fillStyle = theme.inkSoft;
    context.fillText(cut(context, thing.isGroup ? `${plural(this.members.get(thing.id).length, "operation")}, ${this.groupFigure(thing.id)}` : `${record.name}`, room - (thing.isGroup ? 0 : 40 * scale)), left, y + h_ * 0.7);
    if (!thing.isGroup) {
      context.textAlign = "right";
      if (hasFigure) context.fillText(figure, x + w - 6 * scale, y + h_ * 0.32);
      if (record.loops.length && this.by === "module") context.fillText(`↻${this.report.loops[record.loops.at(-1)].count}`, x + w - 6 * scale, y + h_ * 0.7);
      if (this.wrong.has(record.id)) {
        context.fillStyle = theme.bad;
        context.fillText("⚠", x + w - 6 * scale, y + h_ * 0.7);
      }
    }
  }

  groupFigure(id) {
    const ids = this.members.get(id);
    return this.colour === "bytes" ? bytes(this.figure(ids, (op) => op.moved)) : micros(this.figure(ids, (op) => op.us));
  }

  short(op) {
    if (this.colour === "bytes") return bytes(op.moved);
    if (this.colour === "memory") return op.outputs.map((operand) => operand.memory).join(", ");
    if (this.colour === "error") return this.errors[op.id] === null ? "" : `${digits(this.errors[op.id])} ×`;
    return micros(op.us);
  }
}

function arrow(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 4, y - 7);
  context.lineTo(x + 4, y - 7);
  context.fill();
}

function rounded(context, x, y, w, h_, radius) {
  const most = Math.min(radius, w / 2, h_ / 2);
  context.beginPath();
  context.roundRect(x, y, w, h_, Math.max(0, most));
}

return { graphView, rounded };
})();

// view_compare.js
const module_view_compare = (() => {
// Two bundles: what each operation costs in both, what lies elsewhere, what is in one alone.

const { empty, h } = module_dom;
const { bytes, count, flops, micros, percent, plural } = module_format;
const { findOp } = module_model;
const { card, cardBody, pill } = module_parts;
const { go, state } = module_state;
const { Table } = module_table;
const { tabs } = module_tabs;

function compare(context) {
  return new Compare(context);
}

class Compare {
  constructor({ report }) {
    this.report = report;
    const { against } = report;
    if (!against) {
      this.element = h("div", { class: "view" }, empty("Nothing to compare with", "Give another bundle, an older one for example: this page then shows both side by side.", "spyrec report BUNDLE --against OTHER -o report.html"));
      this.update = () => {};
      return;
    }
    const changed = against.pairs.filter((pair) => (pair.changed ?? []).length);
    this.keys = [{ key: "operations", title: "Operations", badge: String(changed.length) }, { key: "moved", title: "Moved tensors", badge: String(against.moved.length) }, { key: "only", title: "In one alone", badge: String(against.only.length) }, { key: "facts", title: "All differences", badge: String(against.facts.length) }];
    this.tabs = tabs("two bundles", this.keys, (key) => go({ tab: key === "operations" ? null : key }), "subtabs");
    this.tabs.panel.classList.add("grow", "stack");
    this.element = h("div", { class: "view is-full" }, this.totals(against), h("div", { class: "view-head" }, this.tabs.bar), this.tabs.panel);
    this.made = new Map();
    this.changed = changed;
  }

  totals(against) {
    const { totals, bundle } = this.report;
    const rows = [["predicted time", "us", micros], ["read", "read", bytes], ["written", "written", bytes], ["read by cores", "core_read", bytes], ["lower bound", "bound", bytes], ["scratchpad at its fullest", "lx_peak", bytes], ["arithmetic", "flops", flops], ["executions", "executions", count]];
    const cells = rows.flatMap(([name, key, text]) => {
      const [is, was] = [totals[key], against.totals[key]];
      const tone = is === was || key === "flops" || key === "bound" || key === "lx_peak" ? "" : is < was ? "is-better" : "is-worse";
      const change = is === was ? "the same" : was ? `${is > was ? "+" : "−"}${percent(Math.abs(is - was) / was)}` : "new";
      return [h("span", { text: name }), h("span", { class: "numeric", text: text(was) }), h("span", { class: "numeric", text: text(is) }), h("span", { class: `numeric ${tone}`, text: change })];
    });
    const made = card("Side by side", `${against.path} was, ${bundle.path} is`, cardBody(h("div", { class: "versus" }, h("span", { class: "head-cell" }), h("span", { class: "numeric head-cell", text: against.path }), h("span", { class: "numeric head-cell", text: bundle.path }), h("span", { class: "numeric head-cell", text: "change" }), cells)));
    made.classList.add("is-fixed");
    return made;
  }

  make(tab) {
    const { report, changed } = this;
    const { against } = report;
    const open = (op) => op !== undefined && op !== null && go({ op, tensor: null });
    const delta = (is, was) => is - was;
    const signed = (value, text) => (value ? `${value > 0 ? "+" : "−"}${text(Math.abs(value))}` : "–");
    if (tab === "operations") {
      return this.list("Operations that changed", `${changed.length} of ${plural(against.pairs.length, "pair")}; negative is better`, new Table({
        label: "operations of both bundles", rows: changed.length ? changed : against.pairs, sort: { key: "dus", down: false },
        columns: [
          { key: "op", title: "op", width: "3.5rem", numeric: true, value: (pair) => pair.op },
          { key: "function", title: "function", width: "8rem", value: (pair) => report.ops[pair.op].op },
          { key: "name", title: "writes", width: "minmax(8rem, 2fr)", value: (pair) => report.ops[pair.op].name },
          { key: "was", title: "was", width: "6.5rem", numeric: true, value: (pair) => pair.us ?? 0, text: (pair) => micros(pair.us ?? 0) },
          { key: "is", title: "is", width: "6.5rem", numeric: true, value: (pair) => report.ops[pair.op].us, text: (pair) => micros(report.ops[pair.op].us) },
          { key: "dus", title: "time", width: "7rem", numeric: true, value: (pair) => delta(report.ops[pair.op].us, pair.us ?? 0), text: (pair) => signed(delta(report.ops[pair.op].us, pair.us ?? 0), micros) },
          { key: "dbytes", title: "bytes", width: "7rem", numeric: true, value: (pair) => delta(report.ops[pair.op].moved, (pair.read ?? 0) + (pair.written ?? 0)), text: (pair) => signed(delta(report.ops[pair.op].moved, (pair.read ?? 0) + (pair.written ?? 0)), bytes) },
          { key: "changed", title: "what changed", width: "minmax(9rem, 1.5fr)", value: (pair) => (pair.changed ?? []).join(", "), text: (pair) => (pair.changed ?? []).join(", ") || "nothing" },
        ],
        activate: (pair) => open(pair.op), chosen: (pair) => pair.op === findOp(report, state().op),
      }));
    }
    if (tab === "moved") {
      return against.moved.length ? this.list("Tensors that lie elsewhere", null, new Table({
        label: "tensors that lie elsewhere", rows: against.moved,
        columns: [{ key: "name", title: "tensor", value: (move) => move.name }, { key: "was", title: "was in", value: (move) => move.was }, { key: "is", title: "is in", value: (move) => move.is }],
        activate: (move) => move.tensor !== undefined && go({ tensor: move.tensor, op: null }),
      })) : empty("Nothing moved", "Every tensor that both bundles know lies in the same place.", null);
    }
    if (tab === "only") {
      return against.only.length ? this.list("Operations of one bundle alone", null, new Table({
        label: "operations of one bundle alone", rows: against.only,
        columns: [
          { key: "side", title: "in", width: "10rem", value: (item) => (item.side === "this" ? report.bundle.path : against.path) },
          { key: "op", title: "op", width: "4rem", numeric: true, value: (item) => item.op }, { key: "name", title: "writes", value: (item) => item.name },
          { key: "us", title: "time", width: "8rem", numeric: true, value: (item) => item.us ?? 0, text: (item) => micros(item.us ?? 0) },
          { key: "bytes", title: "moves", width: "8rem", numeric: true, value: (item) => (item.read ?? 0) + (item.written ?? 0), text: (item) => bytes((item.read ?? 0) + (item.written ?? 0)) },
        ],
        activate: (item) => item.side === "this" && open(item.op),
      })) : empty("Both have the same operations", "Each has its partner in the other bundle.", null);
    }
    return against.facts.length ? this.list("All differences", "as spyrec diff --semantic tells them", new Table({
      label: "differences", rows: against.facts,
      columns: [{ key: "topic", title: "topic", width: "8rem", value: (fact) => fact.topic }, { key: "about", title: "about", width: "minmax(8rem, 1fr)", value: (fact) => fact.about }, { key: "text", title: "what", width: "minmax(14rem, 3fr)", value: (fact) => fact.text }],
      activate: (fact) => open(fact.op),
    })) : h("div", {}, pill("no difference", "is-good"));
  }

  list(title, note, table) {
    const made = card(title, note, table.element);
    made.classList.add("grow", "fill-table");
    made.table = table;
    return made;
  }

  update() {
    const tab = this.keys.some((item) => item.key === state().tab) ? state().tab : "operations";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, this.make(tab));
    this.tabs.panel.replaceChildren(this.made.get(tab));
    this.made.get(tab).table?.refresh();
  }
}
return { compare };
})();

// view_correctness.js
const module_view_correctness = (() => {
// Correctness: how far outputs are from their bounds and who made which part, where a run was first wrong, what sanitizers found.

const { kind, ramp } = module_colours;
const { definition, empty, h, replace } = module_dom;
const { address, count, digits, percent, plural, ratio, shape } = module_format;
const { findOp } = module_model;
const { card, cardBody, field, numberInput, opLink, pill, rampLegend, select, tensorLink } = module_parts;
const { font, Stage } = module_stage;
const { go, state } = module_state;
const { Table } = module_table;
const { choice, tabs } = module_tabs;

// Errors beyond the bound: up to ten times, up to a hundred times, more; the farther, the darker.
const BEYOND = ["#d55e00", "#963c00", "#571c00"];

function beyond(value) {
  return BEYOND[Number.isNaN(value) || value > 100 ? 2 : value > 10 ? 1 : 0];
}

const GUILT = {
  result: "it stored something else than its inputs explain",
  overwritten: "it changed a tensor that it has no business with",
  rounds: "its loops do not go round as often as the graph asks",
  "copy in": "the host's copy to the device does not hold the graph's numbers",
  "copy out": "what the host got is not what the last operation stored",
  given: "all operations are right for their inputs, but the value is not what was given for it",
  altered: "all operations are right for their inputs, but the constants are not those of the bundle",
};
const OF_OPERATION = ["result", "overwritten", "rounds"];
const RECORD = "spyrec run BUNDLE --check --record RUN.json";

function correctness(context) {
  return new Correctness(context);
}

class Correctness {
  constructor({ report }) {
    this.report = report;
    const findings = report.run?.findings.length ?? 0;
    this.keys = [{ key: "outputs", title: "Outputs" }, { key: "bisect", title: "Bisect" }, { key: "findings", title: "Findings", badge: findings ? String(findings) : null }];
    this.tabs = tabs("correctness", this.keys, (key) => go({ tab: key === "outputs" ? null : key }), "subtabs");
    this.made = new Map();
    const run = report.run;
    const about = run ? `${run.is_same_bundle === false ? "The run is of another bundle. " : ""}numerics ${run.numerics}, engine ${run.engine}${Object.keys(run.dims ?? {}).length ? `, ${Object.entries(run.dims).map(([name, size]) => `${name} = ${size}`).join(", ")}` : ""}` : "No run was recorded.";
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar, h("p", { class: "view-note", text: about })), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  update() {
    const tab = this.keys.some((item) => item.key === state().tab) ? state().tab : "outputs";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, { outputs: () => new Outputs(this.report), bisect: () => new Bisect(this.report), findings: () => new Findings(this.report) }[tab]());
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

class Outputs {
  constructor(report) {
    this.report = report;
    if (!report.outputs.length) {
      this.elements = [empty("No outputs are known", "A bundle without manifest names none.", null)];
      this.update = () => {};
      return;
    }
    this.output = 0;
    this.chosen = null;
    this.stage = new Stage({
      label: "output, part by part", zoom: "", minimum: 1, margin: { left: 64, right: 16, top: 10, bottom: 34 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => go({ output: this.output, cell: `${thing.row},${thing.column}`, op: this.report.outputs[this.output].op ?? null, tensor: null }),
    });
    const has = (list) => report.run?.[list].length > 0;
    const kinds = [has("checks") ? ["checks", "Error / bound"] : null, has("compares") ? ["compares", "Against given numbers"] : null, ["cores", "Cores"]].filter(Boolean);
    this.kind = kinds[0][0];
    this.kinds = choice("Show", kinds, (key) => { this.kind = key; this.show(); });
    this.choose = select(report.outputs.map((output, place) => [String(place), output.name]), 0, (place) => go({ output: place, cell: null }));
    this.legend = h("div", { class: "row" });
    this.answer = h("div", { class: "answer", role: "status" });
    this.verdict = h("div", { class: "row" });
    this.rowInput = numberInput(0, { min: 0, step: 1 }, () => this.seek());
    this.columnInput = numberInput(0, { min: 0, step: 1 }, () => this.seek());
    const map = h("section", { class: "card is-flex grow chart-card", "aria-label": "Output map" },
      h("div", { class: "card-head" }, field("output", this.choose), this.kinds, field("row", this.rowInput), field("column", this.columnInput), h("span", { class: "grow" }), this.legend), this.answer, this.stage.element);
    this.elements = [this.verdict, map];
  }

  get grid() {
    const output = this.report.outputs[this.output];
    if (this.kind === "cores") return output.grid ?? null;
    return this.report.run[this.kind].find((check) => check.output === this.output)?.map ?? output.grid ?? null;
  }

  get check() {
    return this.kind === "cores" ? null : this.report.run[this.kind].find((check) => check.output === this.output) ?? null;
  }

  update() {
    const wanted = Number(state().output ?? this.report.outputs.findIndex((output) => output.op === findOp(this.report, state().op)));
    const next = this.report.outputs[wanted] ? wanted : this.output;
    this.output = next;
    this.choose.value = String(next);
    this.chosen = /^\d+,\d+$/.test(state().cell ?? "") ? state().cell.split(",").map(Number) : null;
    this.show();
  }

  show() {
    const { grid, report } = this;
    const output = report.outputs[this.output];
    const things = [];
    if (grid) for (let row = 0; row < grid.rows; row += 1) for (let column = 0; column < grid.columns; column += 1) things.push({ x: column, y: row, w: 1, h: 1, row, column, cell: row * grid.columns + column });
    this.stage.setThings(things, { width: grid?.columns ?? 1, height: grid?.rows ?? 1 });
    if (this.chosen && grid) this.stage.focus = things[this.chosen[0] * grid.columns + this.chosen[1]] ?? null;
    this.flat = [output.shape.slice(0, -1).reduce((product, extent) => product * extent, 1), output.shape.at(-1) ?? 1];
    this.rowInput.max = String(this.flat[0] - 1);
    this.columnInput.max = String(this.flat[1] - 1);
    replace(this.legend, this.kind === "cores" ? h("span", { class: "faint", text: "each colour a core; the number stands in the tooltip" }) : [rampLegend("0", "1 × the bound"), ["up to 10 ×", "up to 100 ×", "more"].map((text, step) => h("span", { class: "legend-item legend" }, swatch(BEYOND[step]), h("span", { text })))]);
    this.judge(output);
    this.tell(output);
  }

  judge(output) {
    const { check, report } = this;
    const facts = h("p", { class: "soft", text: `${output.name}: ${shape(output.shape)} ${output.dtype ?? ""}` });
    if (!report.run) {
      replace(this.verdict, pill("not checked"), facts, h("code", { class: "command", text: RECORD }));
      return;
    }
    if (!check) {
      replace(this.verdict, pill("this output was not compared"), facts);
      return;
    }
    const worst = check.worst;
    replace(this.verdict, pill(check.ok ? "within its bounds" : `${plural(check.failed ?? 0, "element")} beyond the bound`, check.ok ? "is-good" : "is-bad"), facts,
      h("p", { class: "soft", text: `largest error ${ratio(Number(check.bound_ratio))} its bound${worst ? `, at [${worst.index.join(", ")}]${worst.core === undefined ? "" : `, made by core ${worst.core}`}: got ${digits(Number(worst.got), 6)}, want ${digits(Number(worst.want), 6)}` : ""}` }));
  }

  seek() {
    const { grid } = this;
    if (!grid) return;
    const cell = [Math.floor(Number(this.rowInput.value) / grid.row_step), Math.floor(Number(this.columnInput.value) / grid.column_step)];
    go({ output: this.output, cell: cell.join(","), op: this.report.outputs[this.output].op ?? null, tensor: null });
  }

  // The host indices of a cell as text: flattened rows, and columns.
  range(grid, row, column) {
    const rows = [row * grid.row_step, Math.min(this.flat[0], (row + 1) * grid.row_step) - 1];
    const columns = [column * grid.column_step, Math.min(this.flat[1], (column + 1) * grid.column_step) - 1];
    const part = ([first, last]) => (first === last ? count(first) : `${count(first)}–${count(last)}`);
    return `rows ${part(rows)}, columns ${part(columns)}`;
  }

  tell(output) {
    const { grid, chosen, report } = this;
    if (!chosen || !grid) {
      replace(this.answer, h("p", { class: "soft", text: grid ? "Select a part of the output: who made it, and how far it is from its bound." : "Nothing says which core made which part." }));
      return;
    }
    const [row, column] = chosen;
    const cell = row * grid.columns + column;
    const core = grid.cores?.[cell];
    const error = grid.ratio?.[cell];
    replace(this.answer, h("p", {}, h("strong", { text: `${output.name}, ${this.range(grid, row, column)}: ` }),
      output.op === undefined ? "an input, passed on" : ["made by ", opLink(report, output.op)], core === undefined || core < 0 ? "" : ` on core ${core}`,
      error === undefined ? "" : `; largest error ${ratio(Number(error))} its bound${grid.worst?.[cell] ? ` at row ${count(grid.worst[cell][0])}, column ${count(grid.worst[cell][1])}` : ""}`));
  }

  describe({ row, column, cell }) {
    const { grid, report } = this;
    const output = report.outputs[this.output];
    const core = grid.cores?.[cell];
    return {
      title: `${output.name}: ${this.range(grid, row, column)}`,
      lines: [...(grid.ratio ? [["error / bound", ratio(Number(grid.ratio[cell]))]] : []), ["core", core === undefined || core < 0 ? "not known" : String(core)], ...(output.op === undefined ? [] : [["made by", `${output.op} ${report.ops[output.op].op}`]])],
    };
  }

  draw(context, stage, theme) {
    const { grid } = this;
    context.font = font(11);
    context.textAlign = "center";
    if (!grid) {
      context.fillStyle = theme.inkFaint;
      context.fillText("no map is known", stage.width / 2, stage.height / 2);
      return;
    }
    for (const thing of stage.things) {
      const value = grid.ratio ? Number(grid.ratio[thing.cell]) : null;
      const core = grid.cores?.[thing.cell] ?? -1;
      context.fillStyle = value !== null ? (Number.isNaN(value) || value > 1 ? beyond(value) : ramp(value)) : core < 0 ? theme.surface2 : kind(core);
      if (value === null && core >= 0) context.globalAlpha = 0.35 + 0.5 * ((Math.floor(core / 8) % 4) / 3);
      const [x, y] = [stage.sx(thing.x), stage.sy(thing.y)];
      context.fillRect(x, y, stage.view.kx + 0.5, stage.view.ky + 0.5);
      context.globalAlpha = 1;
    }
    if (grid.cores?.length) this.borders(context, stage, theme, grid);
    if (this.chosen) {
      context.lineWidth = 3;
      context.strokeStyle = theme.focus;
      context.strokeRect(stage.sx(this.chosen[1]), stage.sy(this.chosen[0]), stage.view.kx, stage.view.ky);
    }
    context.fillStyle = theme.inkFaint;
    const base = stage.height - stage.margin.bottom;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const [column, row] = [Math.min(grid.columns - 1, Math.round(share * grid.columns)), Math.min(grid.rows - 1, Math.round(share * grid.rows))];
      context.textAlign = share === 1 ? "right" : share === 0 ? "left" : "center";
      context.fillText(count(Math.min(this.flat[1] - 1, column * grid.column_step)), stage.sx(share * grid.columns), base + 12);
      context.textAlign = "right";
      if (grid.rows > 4 || share === 0) context.fillText(count(Math.min(this.flat[0] - 1, row * grid.row_step)), stage.margin.left - 8, stage.sy(share * grid.rows) + (share === 0 ? 6 : share === 1 ? -6 : 0));
    }
    context.textAlign = "center";
    context.fillText("column of the output", stage.sx(grid.columns / 2), base + 25);
  }

  // Lines where the core changes.
  borders(context, stage, theme, grid) {
    context.strokeStyle = theme.ink;
    context.globalAlpha = 0.35;
    context.lineWidth = 1;
    context.beginPath();
    for (const { row, column, cell } of stage.things) {
      if (column + 1 < grid.columns && grid.cores[cell] !== grid.cores[cell + 1]) {
        context.moveTo(stage.sx(column + 1), stage.sy(row));
        context.lineTo(stage.sx(column + 1), stage.sy(row + 1));
      }
      if (row + 1 < grid.rows && grid.cores[cell] !== grid.cores[cell + grid.columns]) {
        context.moveTo(stage.sx(column), stage.sy(row + 1));
        context.lineTo(stage.sx(column + 1), stage.sy(row + 1));
      }
    }
    context.stroke();
    context.globalAlpha = 1;
  }
}

function swatch(colour) {
  const made = h("span", { class: "swatch", "aria-hidden": "true" });
  made.style.backgroundColor = colour;
  return made;
}

class Bisect {
  constructor(report) {
    this.update = () => {};
    const found = report.run?.bisect;
    if (!found) {
      this.elements = [empty("No bisection was recorded", "It compares every value as it is stored, and names the first operation that is wrong by itself.", "spyrec run BUNDLE --bisect --record RUN.json")];
      return;
    }
    const worst = found.worst;
    const facts = definition([
      ["compared", `${count(found.compared)} of ${plural(found.total, "operation")}`],
      ["nearest to its bound", found.worst_ratio === undefined ? null : h("span", {}, `${ratio(Number(found.worst_ratio))}${found.worst_op === undefined ? "" : " at "}`, found.worst_op === undefined ? "" : opLink(report, found.worst_op))],
      ["what is wrong", found.guilt === undefined ? null : (GUILT[found.guilt] ?? found.guilt)],
      ["operation", found.op === undefined ? null : opLink(report, found.op)],
      ["value", found.tensor !== undefined ? tensorLink(report, found.tensor) : found.tensor_name],
      ["node", found.node],
      ["stands at", found.location],
      ["error", found.error === undefined ? null : `${digits(Number(found.error), 4)}, bound ${digits(Number(found.bound), 4)}`],
      ["elements", found.failed ? `${count(found.failed)} of ${count(found.elements ?? 0)} wrong (${percent(found.failed / Math.max(1, found.elements ?? found.failed))})` : null],
      ["in round", found.iteration?.length ? `[${found.iteration.join(", ")}]` : null],
      ["worst element", worst ? `[${worst.index.join(", ")}], core ${worst.core ?? "not known"}: got ${digits(Number(worst.got), 6)}, want ${digits(Number(worst.want), 6)}` : null],
    ]);
    this.elements = [card("Bisect", "every value against float64, in the order of execution", cardBody(h("div", { class: "stack" }, h("div", {}, pill(found.ok ? "nothing is wrong" : OF_OPERATION.includes(found.guilt) ? "an operation is wrong" : "no operation is wrong, something else is", found.ok ? "is-good" : "is-bad")), facts)))];
  }
}

class Findings {
  constructor(report) {
    this.report = report;
    const run = report.run;
    if (!run?.findings.length) {
      this.update = () => {};
      this.elements = [run ? empty("No findings", "The recorded run has none: either it was not watched, or nothing was to be found.", "spyrec run BUNDLE --sanitize all --record RUN.json") : empty("No run was recorded", "Sanitizers watch a run: bounds, memory that nobody wrote, races.", "spyrec run BUNDLE --sanitize all --record RUN.json")];
      return;
    }
    this.detail = h("div", { class: "stack" });
    this.table = new Table({
      label: "findings of sanitizers", rows: run.findings,
      columns: [
        { key: "sanitizer", title: "sanitizer", width: "7rem", value: (item) => item.sanitizer },
        { key: "message", title: "what", width: "minmax(14rem, 3fr)", value: (item) => item.message },
        { key: "op", title: "op", width: "minmax(8rem, 1fr)", value: (item) => item.op ?? null, text: (item) => (item.op === undefined ? "–" : `${item.op} ${report.ops[item.op].op}`) },
        { key: "core", title: "core", width: "4rem", numeric: true, value: (item) => item.core ?? null },
        { key: "address", title: "address", width: "8rem", numeric: true, value: (item) => item.address ?? null, text: (item) => address(item.address) },
      ],
      activate: (item) => go({ finding: item.id, op: item.op ?? null, tensor: null }),
      chosen: (item) => String(item.id) === state().finding,
    });
    const list = card("Findings", plural(run.findings.length, "finding"), this.table.element);
    list.classList.add("grow", "fill-table");
    this.elements = [list, this.detail];
  }

  update() {
    this.table.refresh();
    const finding = this.report.run.findings[Number(state().finding ?? 0)];
    if (!finding) return;
    replace(this.detail, card(`${finding.sanitizer}: where it is`, finding.message, cardBody(definition([
      ["operation", finding.op === undefined ? null : opLink(this.report, finding.op)],
      ["core", finding.core], ["tensor", finding.tensor === undefined ? null : tensorLink(this.report, finding.tensor)], ["operand", finding.operand],
      ["address", finding.address === undefined ? null : address(finding.address)], ["element", finding.element ? `[${finding.element.join(", ")}]` : null],
      ["device coordinate", finding.device ? `[${finding.device.join(", ")}]` : null], ["in round", finding.iteration?.length ? `[${finding.iteration.join(", ")}]` : null],
      ["field", finding.field], ["comes from", finding.provenance],
    ]), finding.details.map((line) => h("p", { class: "soft", text: line })))));
  }
}
return { correctness };
})();

// view_overview.js
const module_view_overview = (() => {
// The first page: what the model costs, where it goes, and where to look for which answer.

const { kind } = module_colours;
const { h } = module_dom;
const { bytes, count, flops, micros, microsWithin, percent, plural, ratio } = module_format;
const { card, cardBody, legend, tile } = module_parts;
const { go } = module_state;
const { Table } = module_table;

const LIMITS = ["memory", "compute", "ring"];

function overview({ report }) {
  const { totals, run } = report;
  const moved = totals.read + totals.written;
  const tiles = h("div", { class: "tiles" },
    tile("predicted time of a run", totals.us ? micros(totals.us) : "not predicted", totals.uncertainty ? `± ${Math.round(100 * totals.uncertainty)} %, nine times of ten` : report.bundle.profile),
    tile("device memory traffic", bytes(moved), totals.bound ? `${ratio(moved / totals.bound)} the lower bound of ${bytes(totals.bound)}` : `read ${bytes(totals.read)}, written ${bytes(totals.written)}`),
    tile("scratchpad at its fullest", bytes(totals.lx_peak), `${percent(totals.lx_peak / report.bundle.lx_bytes)} of ${bytes(report.bundle.lx_bytes)} a core`),
    tile("arithmetic", flops(totals.flops), `${plural(report.ops.length, "operation")}, ${plural(totals.executions, "execution")}`),
    tile("programs", count(report.programs.length), `${plural(report.loops.length, "loop")}, ${plural(report.host_steps.length, "host step")}`),
    runTile(run));
  const most = Math.max(...report.ops.map((op) => op.us), 1e-9);
  const rows = [...report.ops].sort((one, other) => other.us - one.us || other.moved - one.moved).slice(0, 10);
  const table = new Table({
    label: "the ten most expensive operations", rows, sort: { key: "us", down: true },
    columns: [
      { key: "id", title: "op", width: "4rem", numeric: true, value: (op) => op.id },
      { key: "op", title: "function", width: "9rem", value: (op) => op.op },
      { key: "name", title: "writes", width: "minmax(10rem, 2fr)", value: (op) => op.name },
      { key: "us", title: "time", width: "8rem", numeric: true, value: (op) => op.us, text: (op) => micros(op.us), bar: (op) => op.us / most },
      { key: "share", title: "share", width: "5rem", numeric: true, value: (op) => op.us, text: (op) => (totals.us ? percent(op.us / totals.us) : "–") },
      { key: "limit", title: "limited by", width: "6rem", value: (op) => op.limit ?? "–" },
      { key: "moved", title: "moved", width: "6rem", numeric: true, value: (op) => op.moved, text: (op) => bytes(op.moved) },
    ],
    activate: (op) => go({ op: op.id, tensor: null }),
  });
  const tops = card("Most expensive operations", "of all executions together; select one for its details", table.element);
  tops.classList.add("fill-table");
  table.element.style.height = `${Math.min(10, Math.max(3, rows.length)) * 28 + 36}px`;
  return h("div", { class: "view" }, tiles, tops,
    h("div", { class: "columns" }, shares(report), answers(report)), notes(report));
}

function runTile(run) {
  if (!run) return tile("run", "none recorded", "spyrec run BUNDLE --check --record RUN.json");
  const wrong = run.checks.filter((check) => !check.ok).length + run.findings.length;
  const compared = [run.checks.length ? plural(run.checks.length, "output") + " checked" : "nothing checked", run.findings.length ? plural(run.findings.length, "finding") : null].filter(Boolean);
  return tile("recorded run", run.ok && !wrong ? "agrees" : "found something", compared.join(", "), run.ok && !wrong ? "is-good" : "is-bad");
}

function shares(report) {
  const groups = [["by limit", (op) => op.limit ?? "not known"], ["by class", (op) => op.class ?? "other"]];
  const body = groups.map(([title, of]) => {
    const sums = new Map();
    for (const op of report.ops) sums.set(of(op), (sums.get(of(op)) ?? 0) + op.us);
    const total = [...sums.values()].reduce((sum, value) => sum + value, 0);
    const parts = [...sums].filter(([, value]) => value > 0).sort((one, other) => other[1] - one[1]);
    if (!total) return h("p", { class: "soft", text: "No times are known: the bundle says nothing that could be timed." });
    const bar = h("div", { class: "share-bar", role: "img", "aria-label": `${title}: ${parts.map(([name, value]) => `${name} ${percent(value / total)}`).join(", ")}` }, parts.map(([name, value], place) => {
      const part = h("span", { data: { tip: `${name}: ${micros(value)}, ${percent(value / total)}` } });
      part.style.flexGrow = String(value);
      part.style.backgroundColor = kind(place);
      return part;
    }));
    return h("div", { class: "stack-small" }, h("h3", { text: title }), bar, legend(parts.slice(0, 8).map(([name, value], place) => [kind(place), `${name} ${percent(value / total)}`])));
  });
  return card("Where the time goes", microsWithin(report.totals.us, report.totals.uncertainty), cardBody(h("div", { class: "stack" }, body)));
}

function answers(report) {
  const questions = [
    ["Which operation makes this output element?", { view: "correctness", tab: "outputs" }],
    ["Is the result right, and where is it least so?", { view: "correctness", tab: "outputs" }],
    ["Why is this tensor not in the scratchpads?", { view: "why", kind: "spilled" }],
    ["Where are the scratchpads full?", { view: "memory", tab: "lx" }],
    ["What does core 7 do at a given time?", { view: "time", tab: "timeline" }],
    ["What limits this operation?", { view: "time", tab: "roofline" }],
    ["What moves more than it has to?", { view: "memory", tab: "traffic" }],
    ["At which address lies an element?", { view: "memory", tab: "sticks" }],
    ["Which line of the model became this?", { view: "provenance" }],
    ["What changed against the other bundle?", { view: "compare" }],
  ].filter(([, where]) => where.view !== "compare" || report.against);
  return card("Where to look", null, cardBody(h("ul", { class: "link-list" }, questions.map(([text, where]) =>
    h("li", {}, h("button", { type: "button", class: "button-link is-words", text, on: { click: () => go({ tab: null, kind: null, ...where }) } }))))));
}

function notes(report) {
  const facts = [`${report.bundle.kind} bundle ${report.bundle.path}`, report.bundle.dialect ? `dialect ${report.bundle.dialect}` : null, `target ${report.bundle.target}, ${plural(report.bundle.cores, "core")}`, report.bundle.profile ? `profile ${report.bundle.profile}` : null]
    .filter(Boolean).join(" · ");
  return card("About this report", facts, report.notes.length ? cardBody(h("ul", { class: "notes" }, report.notes.map((note) => h("li", { text: note })))) : cardBody(h("p", { class: "soft", text: "Nothing had to be left out." })));
}
return { LIMITS, overview };
})();

// view_time.js
const module_view_time = (() => {
// Time: what is the roof of each operation, and what every core and engine does at any moment.

const { kind, withAlpha } = module_colours;
const { empty, h, replace } = module_dom;
const { bytes, count, digits, micros, microsWithin, percent } = module_format;
const { coreText, findOp, hasCore, opTitle } = module_model;
const { card, field, legend, numberInput, opLink, pill } = module_parts;
const { doingAt } = module_schedule;
const { cut, font, Stage, ticks } = module_stage;
const { go, state } = module_state;
const { Table } = module_table;
const { tabs } = module_tabs;

const TABS = [{ key: "timeline", title: "Timeline" }, { key: "roofline", title: "Roofline" }];
const LIMIT_COLOUR = { memory: kind(0), compute: kind(5), ring: kind(2) };
const WAIT_WORDS = { start: "the launch of the operation", operands: "operands from device memory", compute: "the compute engine", ring: "partial sums of other cores", store: "results to be stored", "other cores": "other cores" };

function timeView(context) {
  return new TimeView(context);
}

class TimeView {
  constructor({ report, schedule }) {
    Object.assign(this, { report, schedule });
    this.tabs = tabs("time", TABS, (key) => go({ tab: key === "timeline" ? null : key }), "subtabs");
    this.about = h("p", { class: "view-note", text: this.origin() });
    this.made = new Map();
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar, this.about), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  origin() {
    const { time, totals } = this.report;
    const from = { run: "as a recorded run executed it", predicted: "predicted, every loop with its most rounds" }[time.from];
    return from ? `${microsWithin(time.us || totals.us, totals.uncertainty)}, ${from}; all times are simulated` : "";
  }

  update() {
    const tab = state().tab === "roofline" ? "roofline" : "timeline";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, tab === "roofline" ? new Roofline(this.report) : new Timeline(this.report, this.schedule));
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

class Roofline {
  constructor(report) {
    this.report = report;
    const { roof } = report.time;
    this.rows = report.ops.filter((op) => op.us > 0);
    this.table = new Table({
      label: "limits of operations", rows: this.rows, sort: { key: "us", down: true },
      columns: [
        { key: "id", title: "op", width: "3.5rem", numeric: true, value: (op) => op.id },
        { key: "op", title: "function", width: "8rem", value: (op) => op.op },
        { key: "name", title: "writes", width: "minmax(8rem, 2fr)", value: (op) => op.name },
        { key: "us", title: "time", width: "9rem", numeric: true, value: (op) => op.us, text: (op) => microsWithin(op.us, op.uncertainty) },
        { key: "limit", title: "limited by", width: "7rem", value: (op) => op.limit ?? "–", colour: (op) => LIMIT_COLOUR[op.limit] ?? "#8a94a3" },
        { key: "intensity", title: "flop/B", width: "6rem", numeric: true, value: (op) => op.flops_per_byte ?? null, text: (op) => (op.flops_per_byte === undefined ? "no bytes" : digits(op.flops_per_byte)) },
        { key: "ridge", title: "ridge", width: "5rem", numeric: true, value: (op) => op.ridge ?? null, text: (op) => (op.ridge === undefined ? "–" : digits(op.ridge)), tip: "flops per byte from which compute is the roof" },
        { key: "peak", title: "of peak", width: "6rem", numeric: true, value: (op) => op.utilisation ?? null, text: (op) => (op.utilisation === undefined ? "–" : percent(op.utilisation)), bar: (op) => op.utilisation ?? 0 },
      ],
      activate: (op) => go({ op: op.id, tensor: null }),
      chosen: (op) => op.id === findOp(report, state().op),
    });
    const points = this.rows.filter((op) => op.flops > 0 && op.flops_per_byte > 0);
    const tableCard = card("Limits", "select an operation", this.table.element);
    tableCard.classList.add("grow", "fill-table");
    if (!roof || !points.length) {
      this.elements = [card("Roofline", null, empty("No roof can be drawn", "The report knows no operation with both arithmetic and device memory traffic.", null)), tableCard];
      return;
    }
    this.roof = roof;
    this.frame(points);
    this.stage = new Stage({
      label: "roofline", zoom: "", height: 320, minimum: 10, margin: { left: 92, right: 24, top: 14, bottom: 44 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: ({ op }) => ({
        title: opTitle(report, op.id),
        lines: [["intensity", `${digits(op.flops_per_byte)} flop/B`], ["reached", rate(op.flops / op.us)], ["time", microsWithin(op.us, op.uncertainty)], ["limited by", op.limit ?? "–"], ["of its peak", op.utilisation === undefined ? "–" : percent(op.utilisation)]],
      }),
      activate: ({ op }) => go({ op: op.id, tensor: null }),
    });
    const most = Math.max(...points.map((op) => op.us));
    const things = points.map((op) => {
      const size = 0.1 + 0.16 * Math.sqrt(op.us / most);
      return { x: this.x(op.flops_per_byte) - size / 2, y: this.y(op.flops / op.us) - size / 2, w: size, h: size, op };
    }).sort((one, other) => other.op.us - one.op.us);
    this.stage.setThings(things, { width: this.span[0], height: this.span[1] });
    const chart = h("section", { class: "card is-fixed", "aria-label": "Roofline" }, h("div", { class: "card-head" }, h("h2", { text: "Roofline" }), h("p", { text: "an operation's arithmetic per byte, and what it reaches; larger is longer" }), legend(Object.entries(LIMIT_COLOUR).map(([name, colour]) => [colour, `limited by ${name}`]))), this.stage.element);
    this.elements = [chart, tableCard];
  }

  frame(points) {
    const { roof } = this;
    const peaks = Object.entries(roof.flops_per_us ?? {}).filter(([, value]) => value > 0);
    const xs = [...points.map((op) => op.flops_per_byte), ...peaks.map(([, value]) => value / roof.bytes_per_us)];
    const ys = [...points.map((op) => op.flops / op.us), ...peaks.map(([, value]) => value)];
    this.low = [Math.floor(Math.log10(Math.min(...xs)) - 0.3), Math.floor(Math.log10(Math.min(...ys)) - 0.2)];
    this.high = [Math.log10(Math.max(...xs)) + 0.6, Math.log10(Math.max(...ys)) + 0.6];
    this.span = [this.high[0] - this.low[0], this.high[1] - this.low[1]];
    this.peaks = peaks;
  }

  x(value) {
    return Math.log10(value) - this.low[0];
  }

  y(value) {
    return this.high[1] - Math.log10(value);
  }

  draw(context, stage, theme) {
    const { left, top, right, bottom } = stage.margin;
    context.font = font(11);
    context.lineWidth = 1;
    for (let power = this.low[0]; power <= this.high[0]; power += 1) {
      const x = stage.sx(power - this.low[0]);
      line(context, x, top, x, stage.height - bottom, theme.line);
      context.textAlign = "center";
      context.fillStyle = theme.inkFaint;
      context.fillText(digits(10 ** power), x, stage.height - bottom + 14);
    }
    for (let power = this.low[1]; power <= this.high[1]; power += 1) {
      const y = stage.sy(this.high[1] - power);
      line(context, left, y, stage.width - right, y, theme.line);
      context.textAlign = "right";
      context.fillStyle = theme.inkFaint;
      context.fillText(rate(10 ** power), left - 8, y);
    }
    context.textAlign = "center";
    context.fillText("flops per byte of device memory", (left + stage.width - right) / 2, stage.height - 12);
    stage.clip(context);
    const highest = Math.max(...this.peaks.map(([, value]) => value), 1);
    const ridge = highest / this.roof.bytes_per_us;
    context.lineWidth = 2;
    const [x0, x1] = [10 ** this.low[0], ridge];
    line(context, stage.sx(this.x(x0)), stage.sy(this.y(x0 * this.roof.bytes_per_us)), stage.sx(this.x(x1)), stage.sy(this.y(highest)), theme.inkSoft);
    for (const [unit, value] of this.peaks) {
      const y = stage.sy(this.y(value));
      const from = stage.sx(this.x(value / this.roof.bytes_per_us));
      line(context, from, y, stage.width - right, y, theme.inkSoft);
      context.textAlign = "right";
      context.fillStyle = theme.inkSoft;
      context.font = font(11, 600);
      context.fillText(`${unit.toUpperCase()} ${rate(value)}`, stage.width - right - 6, y - 9);
    }
    context.textAlign = "left";
    context.save();
    context.translate(stage.sx(this.x(x0 * 1.4)), stage.sy(this.y(x0 * 1.4 * this.roof.bytes_per_us)));
    context.rotate(Math.atan2(-stage.view.ky, stage.view.kx));
    context.fillText(`device memory ${bytes(this.roof.bytes_per_us * 1e6)}/s`, 4, -9);
    context.restore();
    const chosen = findOp(this.report, state().op);
    for (const thing of stage.things) {
      const colour = LIMIT_COLOUR[thing.op.limit] ?? "#8a94a3";
      const radius = Math.max(4, (thing.w * stage.view.kx) / 4);
      context.beginPath();
      context.arc(stage.sx(thing.x + thing.w / 2), stage.sy(thing.y + thing.h / 2), radius, 0, 7);
      context.fillStyle = withAlpha(colour, 0.7);
      context.fill();
      context.lineWidth = thing.op.id === chosen ? 3 : 1;
      context.strokeStyle = thing.op.id === chosen ? theme.focus : theme.surface;
      context.stroke();
    }
    context.restore();
  }

  update() {
    this.table.refresh();
    const op = findOp(this.report, state().op);
    if (op !== null) this.table.reveal((row) => row.id === op);
    this.stage?.draw();
  }
}

function rate(perMicro) {
  const value = perMicro * 1e6;
  for (const [unit, factor] of [["Pflop/s", 1e15], ["Tflop/s", 1e12], ["Gflop/s", 1e9], ["Mflop/s", 1e6]]) if (value >= factor) return `${digits(value / factor)} ${unit}`;
  return `${digits(value)} flop/s`;
}

function line(context, x0, y0, x1, y1, colour) {
  context.strokeStyle = colour;
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

const OPEN = 24;
const OPS_LANE = 26;

class Timeline {
  constructor(report, schedule) {
    Object.assign(this, { report, schedule });
    if (!schedule.us) {
      this.elements = [empty("No timeline is known", "Without a schedule of the run nothing says what happens when.", "spyrec run BUNDLE --record RUN.json")];
      this.update = () => {};
      return;
    }
    const { engines } = report.time;
    this.cores = report.bundle.cores;
    this.row = this.cores > 16 ? 10 : 18;
    this.height = OPS_LANE + this.cores * this.row + engines.length * OPEN + 22;
    this.stage = new Stage({
      label: "timeline of cores and engines", zoom: "x", height: this.height + 36, margin: { left: 92, right: 16, top: 8, bottom: 28 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => this.choose(thing),
      find: (x, _, screenX, screenY) => this.find(x, screenX, screenY),
    });
    this.stage.next = (direction) => this.next(direction);
    this.coreInput = numberInput(0, { min: 0, max: this.cores - 1, step: 1 }, (core) => this.seek(core, Number(this.atInput.value)));
    this.atInput = numberInput(0, { min: 0, max: Math.ceil(schedule.us) }, (at) => this.seek(Number(this.coreInput.value), at));
    this.answer = h("div", { class: "answer", role: "status" });
    const colours = engines.map((name, number) => [kind(number), name]);
    this.elements = [h("section", { class: "card is-flex grow timeline-card", "aria-label": "Timeline" },
      h("div", { class: "card-head" }, field("core", this.coreInput), field("at µs", this.atInput), h("span", { class: "grow" }), legend([...colours, ["#8a94a3", "waits"]]), this.stage.bar),
      this.answer, h("div", { class: "timeline-scroll grow" }, this.stage.element))];
  }

  seek(core, at) {
    const found = this.schedule.at(Math.max(0, Math.min(this.schedule.us * (1 - 1e-12), at)));
    go({ core, at: digits(at, 9), op: found?.op ?? null, tensor: null });
  }

  get core() {
    const core = Number(state().core ?? 0);
    return Number.isInteger(core) && core >= 0 && core < this.cores ? core : 0;
  }

  update() {
    const { core } = this;
    const op = findOp(this.report, state().op);
    let at = state().at === undefined ? null : Number(state().at);
    const execution = at === null || Number.isNaN(at) ? null : this.schedule.at(at);
    if (op !== null && execution?.op !== op) {
      const start = this.schedule.startOf(op);
      at = start === null ? at : start + (this.pattern(op)?.us ?? 0) / 2;
    }
    this.moment = at;
    this.coreInput.value = String(core);
    this.atInput.value = at === null ? "" : digits(at, 6).replaceAll(",", "");
    this.tell(core, at);
    const found = at === null ? null : this.schedule.at(at);
    if (found) {
      const thing = { x: found.start, w: found.us, y: 0, h: 1, execution: found, core, engine: null };
      const [left, right] = [this.stage.sx(found.start), this.stage.sx(found.start + found.us)];
      if (this.stage.width && (right < this.stage.margin.left || left > this.stage.width - 16)) this.stage.reveal(thing);
      this.stage.focus = this.thing(found, core, null);
    }
    if (this.stage.content.width !== this.schedule.us) this.stage.setThings([this.thing(this.schedule.at(0), 0, null)].filter(Boolean), { width: this.schedule.us, height: this.height });
    this.stage.draw();
  }

  pattern(op) {
    return this.report.time.patterns[this.report.ops[op].pattern];
  }

  tell(core, at) {
    const { report } = this;
    if (at === null) {
      replace(this.answer, h("p", { class: "soft", text: "Select a place in the timeline, or give a core and a time: what the core's engines do then is told here." }));
      return;
    }
    const found = this.schedule.at(at);
    if (!found) {
      replace(this.answer, h("p", { text: `At ${micros(at)} nothing runs: the run takes ${micros(this.schedule.us)}.` }));
      return;
    }
    const rounds = found.rounds.map(({ loop, round, count: rounds_ }) => `round ${count(round + 1)} of ${count(rounds_)} of ${report.loops[loop].name}`).join(", ");
    const doing = doingAt(report, found.op, core, at - found.start, hasCore);
    const lead = h("p", {}, h("strong", { text: `Core ${core} at ${micros(at)}: ` }), doing ? "" : "no share in ", opLink(report, found.op), ` (${micros(found.start)} to ${micros(found.start + found.us)}${rounds ? `, ${rounds}` : ""})`);
    const engines = doing ? h("div", { class: "row" }, doing.map(({ engine, doing: what, why }) =>
      pill(what === "works" ? `${engine} works` : what === "waits" ? `${engine} waits for ${WAIT_WORDS[why] ?? why}` : `${engine} has nothing to do`, what === "works" ? "is-good" : ""))) : h("p", { class: "soft", text: "It takes no part in this operation." });
    replace(this.answer, lead, engines);
  }

  thing(execution, core, engine) {
    if (!execution) return null;
    const y = engine === null ? OPS_LANE + core * this.row : OPS_LANE + this.cores * this.row + 22 + engine * OPEN;
    return { x: execution.start, w: execution.us, y, h: engine === null ? this.row : OPEN, execution, core, engine };
  }

  find(x, screenX, screenY) {
    const execution = screenX < this.stage.margin.left ? null : this.schedule.at(x);
    if (!execution) return null;
    const y = screenY - this.stage.margin.top;
    if (y < 0) return null;
    if (y < OPS_LANE) return { ...this.thing(execution, this.core, null), y: 0, h: OPS_LANE, isOp: true, at: x };
    const core = Math.floor((y - OPS_LANE) / this.row);
    if (core < this.cores) return { ...this.thing(execution, core, null), at: x };
    const engine = Math.floor((y - OPS_LANE - this.cores * this.row - 22) / OPEN);
    return engine >= 0 && engine < this.report.time.engines.length ? { ...this.thing(execution, this.core, engine), at: x } : null;
  }

  next([dx, dy]) {
    const { execution, core } = this.stage.focus;
    if (dy) return this.thing(execution, Math.max(0, Math.min(this.cores - 1, core + dy)), null);
    const at = dx > 0 ? execution.start + execution.us * (1 + 1e-9) + 1e-9 : execution.start - 1e-6;
    return this.thing(this.schedule.at(Math.max(0, at)), core, null) ?? this.stage.focus;
  }

  choose(thing) {
    const at = thing.at ?? thing.execution.start + thing.execution.us / 2;
    go({ core: thing.core, at: digits(at, 9).replaceAll(",", ""), op: thing.execution.op, tensor: null });
  }

  describe(thing) {
    const { report } = this;
    const { execution, core } = thing;
    const op = report.ops[execution.op];
    const at = thing.at ?? execution.start + execution.us / 2;
    const doing = thing.isOp ? null : doingAt(report, execution.op, core, at - execution.start, hasCore);
    const lines = [["from", micros(execution.start)], ["takes", microsWithin(execution.us, op.uncertainty)], ...execution.rounds.map(({ loop, round, count: rounds }) => [report.loops[loop].name, `round ${count(round + 1)} of ${count(rounds)}`])];
    if (thing.isOp) return { title: opTitle(report, op.id), lines: [...lines, ["limited by", op.limit ?? "–"], ["cores", coreText(op.cores)]] };
    if (!doing) return { title: `core ${core}: no share`, lines: [[`op ${op.id}`, `${op.op} → ${op.name}`], ...lines] };
    const said = doing.filter(({ doing: what, engine }) => what !== "idle" || engine === report.time.engines[thing.engine]).map(({ engine, doing: what, why }) => [engine, what === "waits" ? `waits for ${WAIT_WORDS[why] ?? why}` : what === "idle" ? "nothing to do" : "works"]);
    return { title: `core ${core} at ${micros(at)}: ${op.op} → ${op.name}`, lines: [...lines, ...said] };
  }

  draw(context, stage, theme) {
    const { report, schedule } = this;
    const { left, right, top } = stage.margin;
    const lanes = top + OPS_LANE + this.cores * this.row;
    this.rows(context, stage, theme, lanes);
    const [from, to] = [stage.wx(left), stage.wx(stage.width - right)];
    const chosen = findOp(report, state().op);
    stage.clip(context);
    const runs = [];
    schedule.walk(from, to, 1.2 / stage.view.kx, (execution) => runs.push(execution), (start, us, step) => this.block(context, stage, theme, start, us, step));
    for (const execution of runs) this.execution(context, stage, theme, execution, chosen);
    if (this.moment !== null && this.moment !== undefined) {
      const x = stage.sx(this.moment);
      context.lineWidth = 2;
      line(context, x, top, x, stage.height - stage.margin.bottom, theme.focus);
      context.strokeStyle = theme.focus;
      context.strokeRect(left + 1, top + OPS_LANE + this.core * this.row, stage.width - left - right - 2, this.row);
    }
    context.restore();
    this.axis(context, stage, theme, from, to);
  }

  rows(context, stage, theme, lanes) {
    const { left, right, top } = stage.margin;
    context.textAlign = "right";
    context.font = font(10);
    const every = this.row < 13 ? 4 : 1;
    context.fillStyle = theme.inkSoft;
    context.fillText("operations", left - 8, top + OPS_LANE / 2);
    for (let core = 0; core < this.cores; core += 1) {
      const y = top + OPS_LANE + core * this.row;
      if (core % 2 === 0) {
        context.fillStyle = theme.surface2;
        context.fillRect(left, y, stage.width - left - right, this.row);
      }
      const isChosen = core === this.core;
      context.fillStyle = isChosen ? theme.focus : theme.inkFaint;
      context.font = font(10, isChosen ? 700 : 400);
      const nearChosen = Math.abs(core - this.core) * this.row < 10;
      if (isChosen || (core % every === 0 && !nearChosen)) context.fillText(`core ${core}`, left - 8, y + this.row / 2);
    }
    context.textAlign = "left";
    context.font = font(11, 600);
    context.fillStyle = theme.ink;
    context.fillText(`engines of core ${this.core}`, left, lanes + 11);
    context.font = font(11);
    context.textAlign = "right";
    this.report.time.engines.forEach((name, number) => {
      const y = lanes + 22 + number * OPEN;
      context.fillStyle = theme.surface2;
      context.fillRect(left, y + 2, stage.width - left - right, OPEN - 4);
      context.fillStyle = theme.inkSoft;
      context.fillText(name, left - 8, y + OPEN / 2);
    });
  }

  axis(context, stage, theme, from, to) {
    const { left, right } = stage.margin;
    context.font = font(11);
    context.textAlign = "center";
    context.fillStyle = theme.inkFaint;
    const y = stage.height - stage.margin.bottom;
    for (const value of ticks(Math.max(0, from), Math.min(this.schedule.us, to), Math.max(2, (stage.width - left - right) / 100))) {
      const x = stage.sx(value);
      if (x < left || x > stage.width - right - 12) continue;
      line(context, x, y, x, y + 5, theme.lineStrong);
      context.fillText(micros(value), x, y + 15);
    }
  }

  block(context, stage, theme, start, us, step) {
    const [x, w] = [stage.sx(start), Math.max(1, us * stage.view.kx)];
    const top = stage.margin.top;
    context.fillStyle = withAlpha(kind(4), 0.45);
    context.fillRect(x, top + 3, w, OPS_LANE - 6);
    context.fillStyle = withAlpha(kind(7), 0.35);
    context.fillRect(x, top + OPS_LANE, w, this.cores * this.row);
    const title = step.loop === undefined ? "" : `↻ ${this.report.loops[step.loop].name} × ${count(step.count)}`;
    if (w > 40 && title) {
      context.fillStyle = theme.ink;
      context.font = font(11);
      context.textAlign = "left";
      context.fillText(cut(context, title, w - 8), Math.max(x, stage.margin.left) + 4, top + OPS_LANE / 2);
    }
  }

  execution(context, stage, theme, { op, start, us }, chosen) {
    const pattern = this.pattern(op);
    const { top, left } = stage.margin;
    const [x, w] = [stage.sx(start), us * stage.view.kx];
    const record = this.report.ops[op];
    context.fillStyle = op === chosen ? theme.focus : LIMIT_COLOUR[record.limit] ?? "#8a94a3";
    context.globalAlpha = op === chosen ? 1 : 0.25 + 0.25 * (op % 2);
    context.fillRect(x, top + 3, Math.max(1, w - (w > 4 ? 1 : 0)), OPS_LANE - 6);
    context.globalAlpha = 1;
    if (w > 34) {
      context.font = font(11, op === chosen ? 600 : 400);
      context.textAlign = "left";
      context.fillStyle = op === chosen ? theme.page : theme.ink;
      const shown = Math.max(x, left);
      context.fillText(cut(context, `${record.op} → ${record.name}`, Math.min(x + w, stage.width) - shown - 8), shown + 4, top + OPS_LANE / 2);
    }
    for (const group of pattern?.groups ?? []) {
      for (const [first, past] of group.cores) {
        const y = top + OPS_LANE + first * this.row;
        this.group(context, stage, group, x, y, past - first, w);
        if (first <= this.core && this.core < past) this.engines(context, stage, theme, group, start, top + OPS_LANE + this.cores * this.row + 22);
      }
    }
  }

  // All cores of a group at once: each engine is a thin band of each row.
  group(context, stage, group, x, y, cores, w) {
    const bands = this.report.time.engines.length;
    const band = (this.row - 1) / bands;
    if (w < 3) {
      const longest = (group.spans ?? []).reduce((most, span) => (span[2] - span[1] > most[2] - most[1] ? span : most), [7, 0, 0]);
      context.fillStyle = withAlpha(kind(longest[0]), 0.6);
      context.fillRect(x, y, Math.max(1, w), cores * this.row - 1);
      return;
    }
    for (const [engine, first, last] of group.spans ?? []) {
      const [from, width] = [x + first * stage.view.kx, Math.max(0.8, (last - first) * stage.view.kx)];
      context.fillStyle = kind(engine);
      for (let core = 0; core < cores; core += 1) context.fillRect(from, y + core * this.row + engine * band, width, Math.max(1, band - 0.2));
    }
  }

  engines(context, stage, theme, group, start, y) {
    for (const [engine, first, last, wait] of group.waits ?? []) {
      const [x, w] = [stage.sx(start + first), (last - first) * stage.view.kx];
      const row = y + engine * OPEN;
      context.fillStyle = withAlpha("#8a94a3", 0.35);
      context.fillRect(x, row + 5, Math.max(0.8, w), OPEN - 10);
      if (w > 44) {
        context.font = font(10);
        context.textAlign = "left";
        context.fillStyle = theme.inkSoft;
        const shown = Math.max(x, stage.margin.left);
        context.fillText(cut(context, `waits: ${this.report.time.waits[wait]}`, Math.min(x + w, stage.width) - shown - 6), shown + 3, row + OPEN / 2);
      }
    }
    for (const [engine, first, last] of group.spans ?? []) {
      const [x, w] = [stage.sx(start + first), (last - first) * stage.view.kx];
      context.fillStyle = kind(engine);
      context.fillRect(x, y + engine * OPEN + 3, Math.max(1, w), OPEN - 6);
    }
  }
}

return { timeView };
})();

// view_why.js
const module_view_why = (() => {
// Why: each choice of the planner, what lost against it, and by how much.

const { kind } = module_colours;
const { empty, h } = module_dom;
const { bytes, micros, plural } = module_format;
const { findOp, findTensor } = module_model;
const { card, opLink, tensorLink } = module_parts;
const { reason } = module_inspector;
const { replace } = module_dom;
const { go, state } = module_state;
const { Table } = module_table;

function why(context) {
  return new Why(context);
}

class Why {
  constructor({ report }) {
    this.report = report;
    if (!report.decisions.length) {
      this.element = h("div", { class: "view" }, empty("No decisions are known", "The manifest of a bundle holds them: a foreign bundle has none, and older ones may not.", "spyrec compile GRAPH.json -o BUNDLE"));
      this.update = () => {};
      return;
    }
    const counts = new Map();
    for (const item of report.decisions) counts.set(item.kind, (counts.get(item.kind) ?? 0) + 1);
    this.order = [...counts.keys()];
    this.filters = h("div", { class: "filters", role: "group", "aria-label": "kinds of decisions" }, ["", ...this.order].map((key) =>
      h("button", { type: "button", class: "filter", data: { key }, "aria-pressed": "false", on: { click: () => go({ kind: key || null }) } },
        h("span", { text: key || "all" }), h("span", { class: "badge", text: String(key ? counts.get(key) : report.decisions.length) }))));
    this.input = h("input", { type: "search", placeholder: "name or reason", "aria-label": "filter decisions", on: { input: () => this.settle() } });
    this.detail = h("div", { class: "is-fixed" });
    this.table = new Table({
      label: "decisions of the planner", rows: report.decisions, sort: null,
      columns: [
        { key: "kind", title: "decision", width: "6.5rem", value: (item) => item.kind, colour: (item) => kind(this.order.indexOf(item.kind)) },
        { key: "subject", title: "about", width: "minmax(7rem, 1.2fr)", value: (item) => item.subject },
        { key: "bytes", title: "saves", width: "5rem", numeric: true, value: (item) => item.saved_bytes, text: (item) => (item.saved_bytes ? bytes(item.saved_bytes) : "–"), tip: "device memory traffic by which the alternative is worse; negative: the decision costs more of it" },
        { key: "us", title: "time", width: "5.5rem", numeric: true, tip: "simulated time by which the alternative is worse", value: (item) => item.saved_us, text: (item) => (item.saved_us ? micros(item.saved_us) : "–") },
        { key: "ways", title: "ways", width: "3.5rem", numeric: true, value: (item) => item.considered.length, text: (item) => (item.considered.length ? String(item.considered.length) : "–"), tip: "ways that the planner weighed; select the decision to see them" },
        { key: "reason", title: "why", width: "minmax(8rem, 3fr)", value: (item) => item.reason },
        { key: "alternative", title: "instead of", width: "minmax(6rem, 1fr)", value: (item) => item.alternative ?? item.considered.find((way) => !way.chosen)?.text ?? "–" },
      ],
      activate: (item) => go({ decision: item.id, ...(item.tensor !== undefined ? { tensor: item.tensor, op: null } : { op: item.ops[0] ?? null, tensor: null }) }),
      chosen: (item) => this.isAbout(item),
    });
    const list = card("Decisions", "bytes and times are of the whole model", this.table.element);
    list.classList.add("grow", "fill-table");
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.filters, h("span", { class: "grow" }), h("label", { class: "field" }, this.input)), list, this.detail);
  }

  isAbout(item) {
    if (state().decision !== undefined) return String(item.id) === state().decision;
    const [tensor, op] = [findTensor(this.report, state().tensor), findOp(this.report, state().op)];
    return tensor !== null ? item.tensor === tensor : op !== null && item.ops.includes(op);
  }

  settle() {
    const word = this.input.value.trim().toLowerCase();
    const key = state().kind ?? "";
    const rows = this.report.decisions.filter((item) => (!key || item.kind === key) && (!word || `${item.subject} ${item.reason} ${item.alternative ?? ""}`.toLowerCase().includes(word)));
    this.table.setRows(rows);
    for (const filter of this.filters.children) filter.setAttribute("aria-pressed", String(filter.dataset.key === key));
  }

  update() {
    this.settle();
    const chosen = this.table.shown.filter((item) => this.isAbout(item));
    if (chosen.length) this.table.reveal((item) => item === chosen[0]);
    replace(this.detail, chosen.length ? card(plural(chosen.length, "decision chosen", "decisions chosen"), null, h("div", { class: "card-body stack is-scroll" }, chosen.slice(0, 5).map((item) => h("div", { class: "stack-small" }, reason(item, true),
      h("div", { class: "row" }, item.tensor !== undefined ? tensorLink(this.report, item.tensor) : null, item.ops.slice(0, 4).map((id) => opLink(this.report, id))))))) : null);
  }
}
return { why };
})();

// view_memory.js
const module_view_memory = (() => {
// Memory: the scratchpads over time, device memory by address, traffic beside its bound, and what a stick holds.

const { inkOn, kind, withAlpha } = module_colours;
const { empty, h, replace } = module_dom;
const { address, bytes, count, micros, percent, plural, ratio, shape } = module_format;
const { coreText, findOp, findTensor, hasCore, opTitle } = module_model;
const { card, field, numberInput, select, tile } = module_parts;
const { byteTicks, cut, font, Stage, ticks } = module_stage;
const { go, state } = module_state;
const { Sticks } = module_sticks;
const { Table } = module_table;
const { choice, tabs } = module_tabs;

const TABS = [{ key: "lx", title: "Scratchpads" }, { key: "device", title: "Device memory" }, { key: "traffic", title: "Traffic" }, { key: "sticks", title: "Sticks" }];

function memoryView(context) {
  return new MemoryView(context);
}

class MemoryView {
  constructor({ report }) {
    this.report = report;
    this.tabs = tabs("memory", TABS, (key) => go({ tab: key === "lx" ? null : key }), "subtabs");
    this.made = new Map();
    this.element = h("div", { class: "view is-full" }, h("div", { class: "view-head" }, this.tabs.bar), this.tabs.panel);
    this.tabs.panel.classList.add("grow", "stack");
  }

  update() {
    const tab = TABS.some((item) => item.key === state().tab) ? state().tab : "lx";
    this.tabs.select(tab);
    if (!this.made.has(tab)) this.made.set(tab, { lx: () => new Scratchpads(this.report), device: () => new DeviceMemory(this.report), traffic: () => new Traffic(this.report), sticks: () => new Sticks(this.report) }[tab]());
    const part = this.made.get(tab);
    if (this.shown !== part) replace(this.tabs.panel, part.elements);
    this.shown = part;
    part.update();
  }
}

// Regions of bytes over operations: a scratchpad's or a pool's.
class RegionChart {
  constructor(report, label, { yTitle }) {
    Object.assign(this, { report, yTitle });
    this.stage = new Stage({
      label, zoom: "x", minimum: 4, margin: { left: 76, top: 14, right: 20, bottom: 40 },
      draw: (context, stage, theme) => this.draw(context, stage, theme),
      describe: (thing) => this.describe(thing),
      activate: (thing) => go({ tensor: thing.region.tensor, op: null }),
    });
  }

  // `top`: bytes at the upper end; `mark`: bytes of the usable end, or null.
  show({ regions, first, past, top, mark, loops, scale }) {
    const ops = this.report.ops;
    this.first = first;
    const x = scale === "time" ? (op) => ops[Math.min(op, ops.length - 1)].start_us - ops[first].start_us : (op) => op - first;
    const end = scale === "time" ? (op) => (op + 1 < past ? ops[op + 1].start_us : ops[op].start_us + ops[op].us) - ops[first].start_us : (op) => op + 1 - first;
    const width = Math.max(1e-6, end(past - 1));
    Object.assign(this, { x, end, top, mark, loops, scale, past, width });
    const things = regions.map((region) => {
      const [begin, last] = [region.begin ?? first, region.end ?? past - 1];
      return { x: x(begin), w: Math.max(end(last) - x(begin), width * 1e-6), y: top - region.past, h: region.past - region.first, region };
    });
    // an operation that stores over what it reads does so in its middle
    for (const one of things) {
      for (const other of things) {
        if (one !== other && one.region.begin === other.region.end && one.region.first < other.region.past && other.region.first < one.region.past && one.region.begin > other.region.begin) {
          const half = (end(one.region.begin) - x(one.region.begin)) / 2;
          other.w = Math.min(other.w, x(one.region.begin) + half - other.x);
          if (!one.moved) Object.assign(one, { x: one.x + half, w: one.w - half, moved: true });
        }
      }
    }
    this.stage.setThings(things, { width, height: Math.max(1, top) });
  }

  describe({ region }) {
    const { report } = this;
    const tensor = report.tensors[region.tensor];
    const decision = report.decisions[region.decision];
    return {
      title: tensor.name,
      lines: [
        ["bytes", `[${count(region.first)}, ${count(region.past)})`], ["size", bytes(region.past - region.first)],
        ...(region.writer !== undefined ? [["written by", opTitle(report, region.writer)]] : []),
        ...(region.readers?.length ? [["read by", region.readers.length > 3 ? plural(region.readers.length, "operation") : region.readers.map((id) => opTitle(report, id)).join("; ")]] : []),
        ...(region.memory_bytes ? [["in device memory", `${bytes(region.memory_bytes)} more`]] : []),
        ...(decision ? [`${decision.kind}: ${decision.reason}`] : []),
      ],
    };
  }

  draw(context, stage, theme) {
    this.axes(context, stage, theme);
    const tensor = findTensor(this.report, state().tensor);
    const op = findOp(this.report, state().op);
    stage.clip(context);
    for (const thing of stage.things) {
      if (!stage.isSeen(thing)) continue;
      const colour = kind(thing.region.tensor);
      const [x, y, w, h_] = [stage.sx(thing.x), stage.sy(thing.y), Math.max(1.5, thing.w * stage.view.kx), Math.max(1.5, thing.h * stage.view.ky)];
      const isChosen = thing.region.tensor === tensor;
      const isUsed = op !== null && (thing.region.writer === op || thing.region.readers?.includes(op));
      const isSoft = (tensor !== null && !isChosen) || (op !== null && !isUsed);
      context.fillStyle = withAlpha(colour, isSoft ? 0.35 : 0.85);
      context.fillRect(x, y, w, h_);
      context.strokeStyle = isChosen || isUsed ? theme.ink : stage.hover === thing ? theme.ink : theme.surface;
      context.lineWidth = isChosen || isUsed ? 2 : 1;
      if (w > 3) context.strokeRect(x + 0.5, y + 0.5, w - 1, h_ - 1);
      if (h_ >= 13 && w > 24) {
        context.font = font(11, 500);
        context.textAlign = "left";
        context.fillStyle = isSoft ? theme.ink : inkOn(colour);
        const shown = Math.max(x, stage.margin.left);
        context.fillText(cut(context, this.report.tensors[thing.region.tensor].name, Math.min(x + w, stage.width) - shown - 8), shown + 4, y + Math.min(h_ / 2, 12));
      }
    }
    if (op !== null && op >= this.first && op < this.past) {
      context.fillStyle = withAlpha(theme.focus.length === 7 ? theme.focus : "#b54700", 0.18);
      context.fillRect(stage.sx(this.x(op)), stage.margin.top, Math.max(2, (this.end(op) - this.x(op)) * stage.view.kx), stage.height - stage.margin.top - stage.margin.bottom);
    }
    context.restore();
  }

  axes(context, stage, theme) {
    const { left, top, right, bottom } = stage.margin;
    context.font = font(11);
    context.textAlign = "right";
    context.lineWidth = 1;
    for (const value of byteTicks(this.top, 6)) {
      const y = stage.sy(this.top - value);
      context.strokeStyle = theme.line;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(stage.width - right, y);
      context.stroke();
      context.fillStyle = theme.inkFaint;
      context.fillText(value ? bytes(value) : "0", left - 8, y);
    }
    if (this.mark && this.mark <= this.top) {
      const y = stage.sy(this.top - this.mark);
      context.strokeStyle = theme.bad;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(stage.width - right, y);
      context.stroke();
      context.setLineDash([]);
      context.textAlign = "left";
      context.fillStyle = theme.bad;
      context.fillText(`usable: ${bytes(this.mark)}`, left + 6, y + 9);
    }
    context.textAlign = "center";
    context.fillStyle = theme.inkFaint;
    const base = stage.height - bottom;
    const seen = [Math.max(0, stage.wx(left)), Math.min(this.width, stage.wx(stage.width - right))];
    for (const value of ticks(seen[0], seen[1], Math.max(2, stage.width / 90))) {
      if (this.scale !== "time" && !Number.isInteger(value)) continue;
      const x = stage.sx(this.scale === "time" ? value : value + 0.5);
      if (x > stage.width - right) continue;
      context.fillText(this.scale === "time" ? micros(value) : `op ${count(value + this.first)}`, x, base + 26);
    }
    for (const loop of this.loops) {
      const [from, to] = [Math.max(left, stage.sx(this.x(loop.first)) + 1), Math.min(stage.width - right, stage.sx(this.end(loop.past - 1)) - 1)];
      if (to <= from) continue;
      context.strokeStyle = kind(4);
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(from, base + 3);
      context.lineTo(from, base + 8);
      context.lineTo(to, base + 8);
      context.lineTo(to, base + 3);
      context.stroke();
      context.fillStyle = theme.inkSoft;
      if (to - from > 60) context.fillText(cut(context, `↻ ${loop.name} × ${loop.count}`, to - from - 4), (from + to) / 2, base + 15);
    }
  }
}

class Scratchpads {
  constructor(report) {
    this.report = report;
    this.maps = report.memory.lx;
    const spilled = report.decisions.filter((item) => item.kind === "spilled");
    if (!this.maps.length) {
      this.elements = [empty("Nothing lies in the scratchpads", "Every tensor is in device memory.", null), ...(spilled.length ? [this.spills(spilled)] : [])];
      this.update = () => {};
      return;
    }
    this.chart = new RegionChart(report, "scratchpad over operations", { yTitle: "bytes" });
    this.scale = "op";
    this.whole = null;
    this.about = h("p", { class: "faint" });
    const programs = [...new Set(this.maps.map((map) => map.program))];
    this.core = numberInput(0, { min: 0, max: report.bundle.cores - 1, step: 1 }, (core) => go({ core }));
    this.program = select(programs.map((id) => [String(id), `${id} (${report.programs[id]?.directory ?? ""})`]), programs[0], (id) => go({ program: id }));
    const timed = report.ops.some((op) => op.start_us > 0);
    this.headRow = h("div", { class: "row" }, programs.length > 1 ? field("program", this.program) : null, field("core", this.core),
      timed ? choice("Across", [["op", "Operations"], ["time", "Time"]], (key) => { this.scale = key; this.draw(); }) : null,
      choice("Up to", [["peak", "Its fullest"], ["whole", "All of it"]], (key) => { this.whole = key === "whole"; this.draw(); }), h("span", { class: "grow" }), this.about);
    const main = h("section", { class: "card is-flex grow", "aria-label": "Scratchpads" }, h("div", { class: "card-head" }, this.headRow), this.chart.stage.element);
    main.classList.add("chart-card");
    this.elements = [main, spilled.length ? this.spills(spilled) : h("p", { class: "view-note", text: "Nothing was spilled: all that the planner wanted in the scratchpads lies there." })];
  }

  spills(rows) {
    const table = new Table({
      label: "spilled tensors", rows, sort: { key: "bytes", down: true },
      columns: [
        { key: "subject", title: "tensor", width: "minmax(9rem, 1fr)", value: (item) => item.subject },
        { key: "reason", title: "why it lies in device memory", width: "minmax(14rem, 3fr)", value: (item) => item.reason },
        { key: "bytes", title: "costs", width: "7rem", numeric: true, value: (item) => -item.saved_bytes, text: (item) => (item.saved_bytes ? bytes(Math.abs(item.saved_bytes)) : "–") },
        { key: "us", title: "time", width: "7rem", numeric: true, value: (item) => -item.saved_us, text: (item) => (item.saved_us ? micros(Math.abs(item.saved_us)) : "–") },
      ],
      activate: (item) => go(item.tensor !== undefined ? { tensor: item.tensor, op: null } : { op: item.ops[0] ?? null, tensor: null }),
    });
    table.element.style.height = `${Math.min(6, rows.length) * 28 + 44}px`;
    const made = card("Spilled", `${plural(rows.length, "tensor")} could have lain in the scratchpads and ${rows.length === 1 ? "lies" : "lie"} in device memory`, table.element);
    made.classList.add("is-fixed");
    return made;
  }

  update() {
    const op = findOp(this.report, state().op);
    const tensor = findTensor(this.report, state().tensor);
    const core = Number(state().core ?? this.core.value);
    const wanted = state().program ?? (op !== null ? this.report.ops[op].program : tensor !== null ? this.maps.find((map) => map.regions.some((region) => region.tensor === tensor))?.program : null) ?? this.program.value;
    const inProgram = this.maps.filter((map) => map.program === Number(wanted));
    const maps = inProgram.length ? inProgram : this.maps;
    this.map = maps.find((map) => hasCore(map.cores, core)) ?? maps[0];
    this.core.value = String(core);
    this.program.value = String(this.map.program);
    this.isMissing = !hasCore(this.map.cores, core);
    this.draw();
  }

  draw() {
    const { map, report } = this;
    if (!map) return;
    const program = report.programs[map.program];
    const whole = this.whole ?? map.peak > 0.35 * map.usable;
    const top = whole ? map.usable : Math.min(map.usable, map.peak * 1.06);
    const loops = report.loops.filter((loop) => loop.program === map.program);
    this.chart.show({ regions: map.regions, first: program.first, past: program.past, top, mark: map.usable, loops, scale: this.scale });
    this.about.textContent = `${this.isMissing ? `core ${this.core.value} holds nothing here; shown are ` : ""}cores ${coreText(map.cores)}: at most ${bytes(map.peak)} of ${bytes(map.usable)} (${percent(map.peak / map.usable)})`;
    const tensor = findTensor(report, state().tensor);
    const thing = this.chart.stage.things.find((item) => item.region.tensor === tensor);
    if (thing) this.chart.stage.reveal(thing);
  }
}

class DeviceMemory {
  constructor(report) {
    this.report = report;
    const { segments, pools } = report.memory;
    const rows = report.tensors.filter((tensor) => tensor.memory !== "lx" && tensor.size);
    this.table = new Table({
      label: "tensors in device memory", rows, sort: { key: "size", down: true },
      columns: [
        { key: "name", title: "tensor", width: "minmax(11rem, 2fr)", value: (tensor) => tensor.name },
        { key: "role", title: "role", width: "7rem", value: (tensor) => tensor.role },
        { key: "memory", title: "lies in", width: "6.5rem", value: (tensor) => tensor.memory },
        { key: "address", title: "address", width: "9rem", numeric: true, value: (tensor) => tensor.address ?? null, text: (tensor) => (tensor.address === undefined ? "at launch" : address(tensor.address)) },
        { key: "size", title: "size", width: "7rem", numeric: true, value: (tensor) => tensor.size, text: (tensor) => bytes(tensor.size) },
        { key: "shape", title: "shape", width: "minmax(9rem, 1fr)", value: (tensor) => shape(tensor.shape) },
        { key: "read", title: "read", width: "6.5rem", numeric: true, value: (tensor) => tensor.read, text: (tensor) => bytes(tensor.read) },
        { key: "written", title: "written", width: "6.5rem", numeric: true, value: (tensor) => tensor.written, text: (tensor) => bytes(tensor.written) },
      ],
      activate: (tensor) => go({ tensor: tensor.id, op: null }),
      chosen: (tensor) => tensor.id === findTensor(report, state().tensor),
    });
    const tableCard = card("Tensors", `${plural(rows.length, "tensor")}, ${bytes(rows.reduce((sum, tensor) => sum + tensor.size, 0))} together`, this.table.element);
    tableCard.classList.add("grow", "fill-table");
    this.elements = [this.segments(segments), pools.length ? this.pools(pools) : null, tableCard].filter(Boolean);
  }

  segments(segments) {
    if (!segments.length) return card("Segments", "where arguments lie", empty("Addresses come with the launch", "The program takes its arguments' addresses as symbols, so that no segment is fixed.", null));
    const numbers = [...new Set(segments.map((item) => item.number))].sort((one, other) => one - other);
    const starts = new Map(numbers.map((number) => [number, Math.min(...segments.filter((item) => item.number === number).map((item) => item.first))]));
    const longest = Math.max(...segments.map((item) => item.past - starts.get(item.number)));
    const things = segments.map((item) => ({ x: item.first - starts.get(item.number), w: item.past - item.first, y: numbers.indexOf(item.number) + 0.12, h: 0.76, item }));
    const stage = new Stage({
      label: "segments of device memory", zoom: "", height: Math.min(320, 30 + 26 * numbers.length), minimum: 5, margin: { left: 190, right: 20, top: 4, bottom: 24 },
      draw: (context, own, theme) => {
        context.font = font(11);
        context.textAlign = "right";
        numbers.forEach((number, row) => {
          context.fillStyle = theme.inkSoft;
          context.fillText(`segment ${number}, ${address(starts.get(number))}`, 180, own.sy(row + 0.5));
          context.fillStyle = theme.surface2;
          context.fillRect(own.sx(0), own.sy(row + 0.12), longest * own.view.kx, 0.76 * own.view.ky);
        });
        context.textAlign = "center";
        for (const value of byteTicks(longest, 6)) {
          context.fillStyle = theme.inkFaint;
          context.textAlign = own.sx(value) > own.width - 60 ? "right" : "center";
          context.fillText(value ? `+${bytes(value)}` : "0", own.sx(value), own.height - 10);
        }
        const chosen = findTensor(this.report, state().tensor);
        for (const thing of things) {
          const colour = kind(thing.item.tensor);
          const w = Math.max(2, thing.w * own.view.kx);
          context.fillStyle = withAlpha(colour, chosen === null || chosen === thing.item.tensor ? 0.85 : 0.35);
          context.fillRect(own.sx(thing.x), own.sy(thing.y), w, thing.h * own.view.ky);
          context.textAlign = "left";
          context.font = font(11, 500);
          const name = this.report.tensors[thing.item.tensor].name;
          const isInside = context.measureText(name).width < w - 10;
          context.fillStyle = isInside ? inkOn(colour) : theme.ink;
          if (isInside || things.filter((other) => other.y === thing.y).length === 1) context.fillText(name, own.sx(thing.x) + (isInside ? 5 : w + 5), own.sy(thing.y + thing.h / 2));
        }
      },
      describe: ({ item }) => {
        const tensor = this.report.tensors[item.tensor];
        return { title: tensor.name, lines: [["role", tensor.role], ["addresses", `${address(item.first)} to ${address(item.past)}`], ["size", bytes(item.past - item.first)]] };
      },
      activate: ({ item }) => go({ tensor: item.tensor, op: null }),
    });
    stage.setThings(things, { width: longest, height: numbers.length });
    this.segmentStage = stage;
    const made = card("Segments", "where arguments lie, as programs with fixed addresses have them", stage.element);
    made.classList.add("is-fixed");
    return made;
  }

  pools(pools) {
    this.poolChart = new RegionChart(this.report, "pool over operations", { yTitle: "bytes" });
    this.poolChart.stage.surface.style.height = "240px";
    const choose = select(pools.map((pool, place) => [String(place), `program ${pool.program}: ${bytes(pool.size)}`]), 0, (place) => show(pools[Number(place)]));
    const show = (pool) => {
      const program = this.report.programs[pool.program];
      this.poolChart.show({ regions: pool.regions, first: program.first, past: program.past, top: pool.size, mark: null, loops: this.report.loops.filter((loop) => loop.program === pool.program), scale: "op" });
    };
    show(pools[0]);
    const made = h("section", { class: "card is-flex is-fixed", "aria-label": "Pool" }, h("div", { class: "card-head" }, h("h2", { text: "Pool" }), h("p", { text: "device memory that a program uses for what lies between its operations" }), pools.length > 1 ? field("of", choose) : null), this.poolChart.stage.element);
    return made;
  }

  update() {
    this.table.refresh();
    const tensor = findTensor(this.report, state().tensor);
    if (tensor !== null) this.table.reveal((row) => row.id === tensor);
    this.segmentStage?.draw();
    this.poolChart?.stage.draw();
  }
}

class Traffic {
  constructor(report) {
    this.report = report;
    const { totals } = report;
    const moved = totals.read + totals.written;
    const most = Math.max(1, ...report.ops.map((op) => Math.max(op.moved, op.core_read)));
    this.table = new Table({
      label: "traffic of operations", rows: report.ops, sort: { key: "excess", down: true },
      columns: [
        { key: "id", title: "op", width: "3.5rem", numeric: true, value: (op) => op.id },
        { key: "op", title: "function", width: "8rem", value: (op) => op.op },
        { key: "name", title: "writes", width: "minmax(9rem, 2fr)", value: (op) => op.name },
        { key: "moved", title: "moved", width: "7rem", numeric: true, value: (op) => op.moved, text: (op) => bytes(op.moved), bar: (op) => op.moved / most, tip: "distinct bytes of device memory, of all executions" },
        { key: "bound", title: "bound", width: "7rem", numeric: true, value: (op) => op.bound, text: (op) => bytes(op.bound), bar: (op) => op.bound / most, tip: "its share of what no plan undercuts" },
        { key: "excess", title: "over it", width: "7rem", numeric: true, value: (op) => op.excess, text: (op) => (op.excess > 0 ? bytes(op.excess) : "–"), bar: (op) => op.excess / most },
        { key: "core", title: "cores read", width: "7rem", numeric: true, value: (op) => op.core_read, text: (op) => bytes(op.core_read), tip: "the same bytes, once for each core that reads them" },
        { key: "ring", title: "ring", width: "6rem", numeric: true, value: (op) => op.ring, text: (op) => (op.ring ? bytes(op.ring) : "–") },
        { key: "runs", title: "times", width: "5rem", numeric: true, value: (op) => op.executions, text: (op) => count(op.executions) },
      ],
      activate: (op) => go({ op: op.id, tensor: null }),
      chosen: (op) => op.id === findOp(report, state().op),
    });
    const tiles = h("div", { class: "tiles" }, tile("moved", bytes(moved)), tile("lower bound", bytes(totals.bound)),
      tile("moved over bound", totals.bound ? ratio(moved / totals.bound) : "–"), tile("read by cores", bytes(totals.core_read), totals.read ? `each byte ${ratio(totals.core_read / totals.read)}` : null));
    const main = card("Traffic by operation", "device memory; sorted by what is moved beyond the lower bound", this.table.element);
    main.classList.add("grow", "fill-table");
    this.elements = [tiles, main];
  }

  update() {
    this.table.refresh();
    const op = findOp(this.report, state().op);
    if (op !== null) this.table.reveal((row) => row.id === op);
  }
}

return { memoryView };
})();

// main.js
(() => {
// The page: reads the report, builds the frame, and shows the view that the address names.

const { h, svg } = module_dom;
const { microsWithin, plural } = module_format;
const { Inspector } = module_inspector;
const { Lineage } = module_lineage;
const { readReport } = module_model;
const { Schedule } = module_schedule;
const { searchBox } = module_search;
const { go, listen, state } = module_state;
const { tabs } = module_tabs;
const { themeButton } = module_theme;
const { mountTooltip, hideTooltip } = module_tooltip;
const { compare } = module_view_compare;
const { correctness } = module_view_correctness;
const { graphView } = module_view_graph;
const { memoryView } = module_view_memory;
const { overview } = module_view_overview;
const { provenance } = module_view_provenance;
const { timeView } = module_view_time;
const { why } = module_view_why;

const VIEWS = {
  overview: { title: "Overview", make: (context) => ({ element: overview(context), update() {} }) },
  provenance: { title: "Provenance", make: provenance },
  graph: { title: "Graph", make: graphView },
  memory: { title: "Memory", make: memoryView },
  time: { title: "Time", make: timeView },
  correctness: { title: "Correctness", make: correctness },
  why: { title: "Why", make: why },
  compare: { title: "Compare", make: compare },
};
const OWN = { tab: null, text: null, line: null, kind: null, decision: null, finding: null, cell: null, output: null };

function start() {
  const report = readReport();
  const context = { report, lineage: new Lineage(report), schedule: new Schedule(report) };
  const made = new Map();
  let shown = null;

  const wrong = report.run ? report.run.checks.filter((check) => !check.ok).length + report.run.findings.length + (report.run.bisect && !report.run.bisect.ok ? 1 : 0) : 0;
  const bar = tabs("views", Object.entries(VIEWS).map(([key, { title }]) => ({ key, title, badge: key === "correctness" && wrong ? String(wrong) : null })), (key) => go({ ...OWN, view: key }));
  const inspector = new Inspector(report);
  const body = h("div", { class: "body" });
  const main = h("main", { class: "main", id: "main", tabindex: "-1" }, bar.panel);
  const mark = svg("svg", { viewBox: "0 0 22 22", class: "mark", "aria-hidden": "true" },
    [[2, 2], [12, 2], [2, 12]].map(([x, y]) => svg("rect", { x, y, width: 8, height: 8, rx: 2, fill: "currentColor", opacity: x === 12 ? 0.55 : 1 })), svg("circle", { cx: 16, cy: 16, r: 4, fill: "currentColor", opacity: 0.35 }));
  const about = [plural(report.ops.length, "operation"), report.totals.us ? microsWithin(report.totals.us, report.totals.uncertainty) : null, `target ${report.bundle.target}`].filter(Boolean).join(" · ");
  const skip = h("a", { class: "skip", href: "#main", text: "skip to the content", on: { click: (event) => { event.preventDefault(); main.focus(); } } });

  function show(current, before = {}) {
    hideTooltip();
    const key = VIEWS[current.view] ? current.view : current.op !== undefined || current.text !== undefined ? "provenance" : current.tensor !== undefined ? "memory" : "overview";
    bar.select(key);
    if (!made.has(key)) made.set(key, VIEWS[key].make(context));
    const view = made.get(key);
    body.classList.toggle("is-bare", !inspector.show());
    if (shown !== view) {
      bar.panel.replaceChildren(view.element);
      main.scrollTop = 0;
    }
    shown = view;
    view.update(current, before);
    document.title = `${VIEWS[key].title} · ${report.name} · spyrec report`;
  }

  const theme = themeButton(() => {
    if (shown) window.dispatchEvent(new Event("spyrec-redraw"));
  });
  body.append(main, inspector.element);
  document.body.append(
    h("div", {}, skip, h("header", { class: "head" }, mark, h("div", { class: "head-name" }, h("h1", { text: report.name }), h("p", { class: "head-about", text: about })), searchBox(report), theme)),
    h("nav", { "aria-label": "views" }, bar.bar), body);
  mountTooltip();
  listen(show);
  show(state());
}

start();
})();
})();
